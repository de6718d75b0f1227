// The log of a conversation as far as it is read, and what the user has decided about it.

import { attempt } from '../../lib/notes.svelte'
import { everything, Pages } from '../../lib/pages.svelte'
import { listen, rest } from '../../state/server'
import { keyOfEvaluation, type LogEvent } from './events'

interface Entry {
  id: string
  event: LogEvent
}

/** pageOf reads a part of a log. The log only grows, so the place of an event is its id. */
async function pageOf(conversationId: string, type: string, query: { limit: number; cursor?: string }) {
  const [after = 0, read = 0] = (query.cursor ?? '').split(' ').map(Number)
  const got = await rest.get('/conversations/{id}/cognition-log', { path: { id: conversationId }, query: { limit: query.limit, ...(after && { after }), ...(type && { type }) } })
  const events = got.events as LogEvent[]
  return {
    items: events.map((event, i): Entry => ({ id: String(read + i), event })),
    nextCursor: got.next_after ? `${got.next_after} ${read + events.length}` : null,
  }
}

export class Log extends Pages<Entry> {
  /** The type of events that is shown; empty = all. */
  type = $state('')
  /** The evaluations of the whole log, by keyOfEvaluation. */
  evaluations = $state.raw(new Map<string, LogEvent>())

  constructor(private readonly conversationId: string) {
    super((query) => pageOf(conversationId, this.type, query), 100)
  }

  override async load() {
    await Promise.all([super.load(), this.loadEvaluations()])
  }

  private async loadEvaluations() {
    const all = await attempt(() => everything((query) => pageOf(this.conversationId, 'evaluation', query)))
    if (all) this.evaluations = new Map(all.map(({ event }) => [keyOfEvaluation(event), event]))
  }
}

/** onChange calls f soon after a log, the goals or the extractions of a conversation have changed; it returns what ends that. */
export function onChange(conversationId: string, f: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const soon = () => {
    clearTimeout(timer)
    timer = setTimeout(f, 120)
  }
  const stop = listen({
    snapshot: soon,
    ended: (r) => r.conversationId === conversationId && soon(),
    event: (e) => {
      const about = 'conversationId' in e && e.conversationId === conversationId
      if ((about && e.ev.startsWith('extraction.')) || e.ev === 'dream.finished') soon()
    },
  })
  return () => {
    stop()
    clearTimeout(timer)
  }
}
