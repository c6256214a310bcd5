//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"github.com/localqueue/localqueue/queue"
)

type migrationDoc struct {
	Version   int64   `json:"version"`
	Name      string  `json:"name"`
	Applied   bool    `json:"applied"`
	AppliedAt *string `json:"applied_at,omitempty"`
}

func migrateCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate status|up",
		Short: "Look at the file's schema, or bring it up to date as every opening does",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("migrate %q: use migrate status or migrate up", args[0])
			}
			return usagef("use migrate status or migrate up")
		},
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "status",
			Short: "List the steps of the schema and whether the file has them",
			Long: `List the steps of the schema and whether the file has them. No job and no schema changes. Like any reader that is the last
to leave, it copies a WAL that a killed process has left into the file.`,
			Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				if err := checkDir("--dir", a.dir); err != nil {
					return err
				}
				steps, err := queue.MigrateStatus(cmd.Context(), a.dir, a.storeOptions(true)...)
				if err != nil {
					return err
				}
				return a.printSteps(steps)
			},
		},
		&cobra.Command{
			Use:   "up",
			Short: "Apply the steps that the file lacks, making it if need be, and list them",
			Args:  noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				if err := checkDir("--dir", a.dir); err != nil {
					return err
				}
				steps, err := queue.Migrate(cmd.Context(), a.dir, a.storeOptions(false)...)
				if err != nil {
					return err
				}
				if len(steps) == 0 && !a.json {
					a.note("the schema is up to date")
					return nil
				}
				return a.printSteps(steps)
			},
		})
	return cmd
}

func (a *app) printSteps(steps []queue.Migration) error {
	if a.json {
		for _, s := range steps {
			if err := a.printJSON(migrationDoc{Version: s.Version, Name: s.Name, Applied: s.Applied, AppliedAt: instantOrNull(s.AppliedAt)}); err != nil {
				return err
			}
		}
		return nil
	}
	return a.table(func(row func(...any)) {
		row("VERSION", "APPLIED", "NAME")
		for _, s := range steps {
			applied := "no"
			if s.Applied {
				applied = "yes"
			}
			row(s.Version, applied, s.Name)
		}
	})
}
