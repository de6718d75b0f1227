// Comments as threads: each with the replies to it, the oldest first.

import type { Comment } from './types'

export interface Thread {
  first: Comment
  replies: Comment[]
}

/** threads puts each comment under the one on the post that it answers. */
export function threads(comments: readonly Comment[]): Thread[] {
  const byId = new Map(comments.map((c) => [c.id, c]))
  const all = new Map<string, Thread>()
  for (const c of comments) {
    let first = c
    for (let up = byId.get(c.replyTo ?? ''), n = 0; up && n < comments.length; up = byId.get(up.replyTo ?? ''), n++) first = up
    const thread = all.get(first.id) ?? { first, replies: [] }
    if (c !== first) thread.replies.push(c)
    all.set(first.id, thread)
  }
  return [...all.values()]
}
