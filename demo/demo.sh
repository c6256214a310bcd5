#!/usr/bin/env bash
# The main job, for real: one job per file of a tree, several worker processes that run a command on each, one of them
# killed in the middle, one file that fails and is retried. Ends with exit 1 unless every file was handled.
#
#   demo/demo.sh BINARY TREE        (make demo, make demo TREE=/some/folder; FILES=n takes more or fewer files)
set -euo pipefail

localqueue=$(realpath "$1")
tree=$(realpath "${2:-.}")
most=${FILES:-1500}
[ -d "$tree" ] || { echo "demo: $tree is not a folder" >&2; exit 2; }

scratch=$(mktemp -d)
results=$scratch/results
workers=()
cleanup() {
  for pid in "${workers[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$scratch"
}
trap cleanup EXIT
mkdir "$results"
export LOCALQUEUE_DIR=$scratch/data LOCALQUEUE_QUEUE=files
export DEMO_RESULTS=$results DEMO_FIXED=$scratch/fixed

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }
done_count() { find "$results" -type f | wc -l; }

say "1. One job per file of $tree"
(cd "$tree" && find . -type f -not -path '*/.git/*' -not -path './build/*' -not -path './bin/*' | sort | head -n "$most") > "$scratch/list"
total=$(wc -l < "$scratch/list")
[ "$total" -ge 3 ] || { echo "demo: $tree has $total files; name a folder with at least 3" >&2; exit 2; }
DEMO_BAD=$(sed -n "$((total / 2))p" "$scratch/list"); export DEMO_BAD
"$localqueue" put --lines < "$scratch/list" > "$scratch/ids"
echo "$(wc -l < "$scratch/ids") jobs from $total files"

# What a worker runs: the payload, a path, comes on stdin. 65 is EX_DATAERR: this job can't succeed, don't retry it.
cat > "$scratch/handle" <<'HANDLE'
#!/usr/bin/env bash
set -euo pipefail
file=$(cat)
if [ "$file" = "$DEMO_BAD" ] && [ ! -e "$DEMO_FIXED" ]; then
  echo "can't handle $file today" >&2
  exit 65
fi
sum=$(sha256sum < "$file" | cut -d' ' -f1)
printf '%s %s %s\n' "$sum" "$(gzip -c < "$file" | wc -c)" "$file" > "$DEMO_RESULTS/$LOCALQUEUE_ID.part"
mv "$DEMO_RESULTS/$LOCALQUEUE_ID.part" "$DEMO_RESULTS/$LOCALQUEUE_ID"
HANDLE
chmod +x "$scratch/handle"

say "2. Three worker processes; one is killed in the middle"
start_worker() { (cd "$tree" && exec "$localqueue" work --lease 2s --concurrency 2 --until-drained -- "$scratch/handle") 2>>"$scratch/log" & workers+=($!); }
for _ in 1 2 3; do start_worker; done
killed=no
deadline=$((SECONDS + 25))
while :; do
  n=$(done_count)
  printf '%s%d of %d files\033[K' "$([ -t 1 ] && printf '\r')" "$n" "$total"; [ -t 1 ] || echo
  if [ "$killed" = no ] && [ "$n" -ge $((total / 3)) ]; then
    kill -KILL "${workers[0]}"
    wait "${workers[0]}" 2>/dev/null || true # so that bash has nothing to say about it later
    killed=yes
    printf '\n   worker %d got SIGKILL at %d files; its jobs return when their 2 s leases end\n' "${workers[0]}" "$n"
  fi
  alive=0
  for pid in "${workers[@]}"; do kill -0 "$pid" 2>/dev/null && alive=$((alive + 1)); done
  [ "$alive" -gt 0 ] || break
  [ "$SECONDS" -lt "$deadline" ] || { echo "demo: not drained in time" >&2; "$localqueue" stats >&2; exit 1; }
  sleep 0.25
done
for pid in "${workers[@]:1}"; do wait "$pid" || { echo "demo: a worker failed" >&2; cat "$scratch/log" >&2; exit 1; }; done

say "3. The file that failed is in the dead letters"
"$localqueue" list --state failed
failed=$(wc -l < <("$localqueue" list --state failed --json))
[ "$failed" = 1 ] || { echo "demo: $failed dead letters, expected 1" >&2; exit 1; }
touch "$DEMO_FIXED"
"$localqueue" retry --all
(cd "$tree" && "$localqueue" work --until-drained -- "$scratch/handle")

say "4. What two processes say now"
first=$("$localqueue" stats) second=$("$localqueue" stats)
printf '%s\n\n%s\n' "$first" "$second"

say "5. The check"
missing=$(comm -23 <(sort "$scratch/list") <(cat "$results"/* | cut -d' ' -f3- | sort) | wc -l)
[ "$first" = "$second" ] || { echo "demo: the two processes disagree" >&2; exit 1; }
[ "$missing" = 0 ] || { echo "demo: $missing files were not handled" >&2; exit 1; }
left=$("$localqueue" stats --json | tr -d ' \n' | grep -oE '"(ready|processing|failed)":[0-9]+' | grep -v ':0$' || true)
[ -z "$left" ] || { echo "demo: something is left: $left" >&2; exit 1; }
[ "$killed" = yes ] || { echo "demo: the workers were done before one could be killed; give a larger tree" >&2; exit 1; }
echo "all $total files handled, nothing leased, nothing failed; the killed worker cost nothing"
