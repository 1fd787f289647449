// Adds jobs that do nothing to River, has its workers take and end them, and prints how many nanoseconds that took.
//
//	jobs <jobs> <workers>
package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

type nothing struct{}

func (nothing) Kind() string { return "nothing" }

type worker struct {
	river.WorkerDefaults[nothing]
}

func (*worker) Work(context.Context, *river.Job[nothing]) error { return nil }

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	jobs, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return err
	}
	ctx := context.Background()
	// PGHOST, PGUSER and PGDATABASE say where.
	pool, err := pgxpool.New(ctx, "")
	if err != nil {
		return err
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	quiet := slog.New(slog.DiscardHandler)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}

	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{})
	client, err := river.NewClient(driver, &river.Config{
		Logger:  quiet,
		Workers: workers,
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: count}},
		// As in River's own benchmark; with the defaults it would fetch ten times a second.
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	many := make([]river.InsertManyParams, jobs)
	for number := range many {
		many[number] = river.InsertManyParams{Args: nothing{}}
	}
	if _, err := client.InsertManyFast(ctx, many); err != nil {
		return err
	}
	for _, sql := range []string{
		"CREATE VIEW unfinished AS SELECT id FROM river_job WHERE state <> 'completed'",
		"ANALYZE",
	} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return err
		}
	}

	// Completions are told after they are committed.
	completed, cancel := client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: jobs,
		Kinds:    []river.EventKind{river.EventKindJobCompleted},
	})
	defer cancel()
	begun := time.Now()
	if err := client.Start(ctx); err != nil {
		return err
	}
	for range jobs {
		<-completed
	}
	fmt.Println(time.Since(begun).Nanoseconds())
	return client.Stop(ctx)
}
