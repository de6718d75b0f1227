// Package jobs is durable work in the background: what was put into the queue is
// done at least once, whatever crashes, and its effect and its end can be
// committed together, so that it counts once. A Runner is the entry; the queue
// itself is a table behind Store.
//
// A job has a kind (area.verb), an owner (a user, or the server itself) and a
// subject, the id of what it is about. Its life:
//
//	queued ──claimed──▶ running ──▶ done
//	  ▲                   │  ├────▶ failed      attempts used up, or not worth trying again
//	  │                   │  └────▶ cancelled   by who enqueued it, also while queued
//	  └─back-off, crash, stop──┘
//
// What it promises:
//
//   - Of one kind, owner and subject at most one job is open (queued or running).
//     Enqueueing another gives a queued one the new payload and the earlier of
//     both times. One that has begun, also when it waits for its next attempt, keeps
//     its payload and its time: the other is noted (Job.Next), and follows when that
//     one has ended: a handler never misses a change that came after it had looked.
//     With Spec.Once an open job stays as it is.
//   - A running job is leased. A lease that is not renewed, because the process
//     died, ends within Options.Lease, and the job is claimed again, as the next
//     attempt. Where the process is alone with its database, it takes over what its
//     predecessor left when it starts. Processes that share a database must have
//     clocks that agree within the lease.
//   - Who has lost a job cannot end it: Tx.FinishJob and everything else done with
//     it fail with ErrLost, which rolls back the transaction.
//   - Users get their turns one after the other, whatever one of them has enqueued.
//
// Specification: decisions 5, 19, 20; memory page, 1.7.
package jobs
