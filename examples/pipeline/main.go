// Pipeline moves work through two queues of one Store: acking an order and putting its invoice are one transaction, so a
// crash between the two can neither lose the invoice nor write it twice.
//
//	go run ./examples/pipeline [directory]
//
// Without a directory it uses one of its own and removes it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/localqueue/localqueue/generics"
	"github.com/localqueue/localqueue/queue"
)

// Order comes in at the front of the pipeline.
type Order struct {
	Number int    `json:"number"`
	Item   string `json:"item"`
	Cents  int64  `json:"cents"`
}

// Invoice is what an order becomes.
type Invoice struct {
	Order int   `json:"order"`
	Total int64 `json:"total"`
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pipeline:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	dir, done, err := directory(args)
	if err != nil {
		return err
	}
	defer done()

	store, err := queue.Open(dir)
	if err != nil {
		return err
	}
	defer store.Close()
	orders, err := generics.On[Order](store, "orders")
	if err != nil {
		return err
	}
	invoices, err := generics.On[Invoice](store, "invoices")
	if err != nil {
		return err
	}

	ctx := context.Background()
	if _, err := orders.PutMany(ctx, []Order{{1, "lamp", 1900}, {2, "chair", 4500}, {3, "desk", 19900}}); err != nil {
		return err
	}

	price := generics.NewWorker(orders, func(ctx context.Context, job *generics.Job[Order]) error {
		invoice := Invoice{Order: job.Data.Number, Total: job.Data.Cents * 119 / 100}
		err := job.AckWith(ctx, func(tx *queue.Tx) error {
			_, err := invoices.PutTx(ctx, tx, invoice)
			return err
		})
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "order", job.Data.Number, "for a", job.Data.Item, "is priced")
		return nil
	}, generics.Concurrency(1), generics.UntilEmpty())
	send := generics.NewWorker(invoices, func(_ context.Context, job *generics.Job[Invoice]) error {
		fmt.Fprintf(out, "invoice for order %d: %d.%02d\n", job.Data.Order, job.Data.Total/100, job.Data.Total%100)
		return nil
	}, generics.Concurrency(1), generics.UntilEmpty())

	// One after the other, so that the output is always the same; in a service both run at once.
	if err := price.Run(ctx); err != nil {
		return err
	}
	return send.Run(ctx)
}

// directory is the one named on the command line, or a temporary one.
func directory(args []string) (dir string, done func(), err error) {
	if len(args) > 0 {
		return args[0], func() {}, nil
	}
	dir, err = os.MkdirTemp("", "localqueue-pipeline-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}
