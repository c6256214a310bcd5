//go:build unix

package main

import (
	"cmp"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/sql/sqlite/migrations"
)

type versionDoc struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	SQLite  string `json:"sqlite"`
	Schema  int64  `json:"schema"`
}

func versionCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program, of SQLite, and of the schema",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			doc := newVersionDoc()
			return a.print(doc, "localqueue %s (%s, SQLite %s, schema %d)\n", doc.Version, doc.Go, doc.SQLite, doc.Schema)
		},
	}
}

func newVersionDoc() versionDoc {
	doc := versionDoc{Version: "(devel)", SQLite: queue.SQLiteVersion(), Schema: schemaVersion()}
	if info, ok := debug.ReadBuildInfo(); ok {
		doc.Version, doc.Go = cmp.Or(info.Main.Version, doc.Version), info.GoVersion
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				doc.Commit = s.Value
			}
		}
	}
	return doc
}

// schemaVersion is the number of the newest migration.
func schemaVersion() (newest int64) {
	files, _ := migrations.FS.ReadDir(".") // embedded: it can't fail
	for _, f := range files {
		number, _, _ := strings.Cut(f.Name(), "_")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			newest = max(newest, n)
		}
	}
	return newest
}

func completionCmd() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print the script that makes a shell complete this command",
		Long: `Print the script that makes a shell complete this command. For bash, for this session:

  source <(localqueue completion bash)`,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("name one shell: %s", strings.Join(shells, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return wrapOutput(root.GenBashCompletionV2(out, true))
			case "zsh":
				return wrapOutput(root.GenZshCompletion(out))
			case "fish":
				return wrapOutput(root.GenFishCompletion(out, true))
			case "powershell":
				return wrapOutput(root.GenPowerShellCompletionWithDesc(out))
			}
			return usagef("no completion for %q: use %s", args[0], strings.Join(shells, ", "))
		},
	}
}
