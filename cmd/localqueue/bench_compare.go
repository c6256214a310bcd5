//go:build unix

package main

import (
	"encoding/json"
	"os"

	"github.com/spf13/cobra"

	"github.com/localqueue/localqueue/bench"
)

func benchCompareCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "compare BEFORE.json AFTER.json",
		Short: "Compare the figures of two reports",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("%s takes two reports, not %d", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			before, err := readReport(args[0])
			if err != nil {
				return err
			}
			after, err := readReport(args[1])
			if err != nil {
				return err
			}
			c := bench.Compare(before, after)
			if a.json {
				return a.printJSON(c)
			}
			return wrapOutput(c.WriteText(a.out))
		},
	}
}

func readReport(path string) (*bench.Report, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("%v", err)
	}
	var r bench.Report
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, failf(errPayload, "%s is no report of bench --out: %v", path, err)
	}
	if len(r.Figures) == 0 {
		return nil, failf(errPayload, "%s is no report of bench --out: it has no figures", path)
	}
	return &r, nil
}
