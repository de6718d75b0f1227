// Package jobs runs durable background work: a queued job runs at least once, even after
// a crash, and its effect and its end can be committed together, so that it takes effect
// exactly once. A Runner runs the jobs; the queue is a table behind Store.
//
// A job has a kind (area.verb), an owner (a user, or the server itself) and a
// subject, an id. Its life:
//
//	queued ──claimed──▶ running ──▶ done
//	  ▲                   │  ├────▶ failed      no attempts left, or retrying is pointless
//	  │                   │  └────▶ cancelled   by the one who enqueued it, also while queued
//	  └─back-off, crash, stop──┘
//
// Guarantees:
//
//   - At most one job per kind, owner and subject is open (queued or running).
//     Enqueueing another gives a queued one the new payload and the earlier of
//     both times. One that has begun, also when it waits for its next attempt, keeps
//     its payload and its time: the other is noted (Job.Next), and follows when that
//     one has ended: a handler never misses a change that came after it had looked.
//     With Spec.Once an open job stays as it is. Of those that are done the store keeps the
//     newest.
//   - A running job is leased. A lease that is not renewed, because the process
//     died, ends within Options.Lease, and the job is claimed again, as the next
//     attempt. Where the process is alone with its database, it takes over what its
//     predecessor left when it starts. The clock is that of the store, so those of
//     the processes may differ.
//   - A process that has lost a job cannot end it: Tx.FinishJob and everything else done
//     with it fail with ErrLost, which rolls back the transaction.
//   - Users take turns, however much one of them has enqueued.
package jobs
