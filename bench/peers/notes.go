package main

import (
	"fmt"
	"slices"
	"strings"
)

// notes gathers remarks below a table, so that one which holds for several queues and settings stands there once.
type notes []note

type note struct {
	text string
	of   []noteOf
}

type noteOf struct {
	peer     string
	settings []string
}

func (n *notes) add(text, peer, setting string) {
	i := slices.IndexFunc(*n, func(e note) bool { return e.text == text })
	if i < 0 {
		*n = append(*n, note{text: text})
		i = len(*n) - 1
	}
	e := &(*n)[i]
	if last := len(e.of) - 1; last >= 0 && e.of[last].peer == peer {
		e.of[last].settings = append(e.of[last].settings, setting)
		return
	}
	e.of = append(e.of, noteOf{peer, []string{setting}})
}

// list has a line per remark. The settings are named only where a remark doesn't hold for all of the table's.
func (n notes) list(all int) string {
	var b strings.Builder
	for i, e := range n {
		var names []string
		for _, of := range e.of {
			name := of.peer
			if len(of.settings) < all || strings.ContainsAny(of.settings[0], "0123456789") {
				name += " (" + strings.Join(of.settings, ", ") + ")"
			}
			names = append(names, name)
		}
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "- %s: %s.\n", strings.Join(names, ", "), e.text)
	}
	return b.String()
}
