package iofault

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// counting is a slog handler that counts the warnings and errors that it is given.
type counting struct {
	slog.Handler
	lines atomic.Int64
}

func newCounting() *counting { return &counting{Handler: slog.DiscardHandler} }

func (c *counting) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }
func (c *counting) WithAttrs([]slog.Attr) slog.Handler           { return c }
func (c *counting) WithGroup(string) slog.Handler                { return c }

func (c *counting) Handle(context.Context, slog.Record) error {
	c.lines.Add(1)
	return nil
}

func (c *counting) count() int { return int(c.lines.Load()) }
