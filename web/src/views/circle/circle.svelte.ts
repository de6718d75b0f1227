// The parts of the circle share this: who takes part, and when something has changed.

import { attempt, notes, succeeds } from '../../lib/notes.svelte'
import { plain } from '../../lib/format'
import { common, storedText } from '../../lib/words'
import { characters } from '../../state/characters.svelte'
import { session } from '../../state/session.svelte'
import { listen, rest } from '../../state/server'
import type { Character } from '../../lib/types'
import type { Action, Graph } from './types'
import { circleWords as w } from './words'

export class Circle {
  /** Members and relationships; null before they are known. */
  graph = $state.raw<Graph | null>(null)
  /** The actions that members have offered, the newest first; null before they are known. */
  actions = $state.raw<Action[] | null>(null)
  /** Grows when a relationship, a message box or an action has changed. */
  changed = $state(0)
  /** Grows when settings or the cost may have changed. */
  spent = $state(0)
  private timer: ReturnType<typeof setTimeout> | undefined
  private stop: () => void

  constructor() {
    this.stop = listen({
      snapshot: () => this.touch(),
      event: (e) => {
        if (e.ev === 'circle.relationship' || e.ev === 'circle.message' || e.ev === 'character.updated' || e.ev === 'character.deleted') this.touch()
        if (e.ev.startsWith('circle.')) this.spent++
        if (e.ev === 'circle.failed' && e.data.error.code === 'not_configured') notes.show(storedText(e.data.error), { kind: 'error' })
      },
    })
    void this.read()
  }

  close() {
    this.stop()
    clearTimeout(this.timer)
  }

  /** touch has what is shown read again soon; many changes at once are one. */
  touch() {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      this.changed++
      void this.read()
    }, 150)
  }

  private async read() {
    const [graph, actions] = await Promise.all([attempt(() => rest.get('/circle/relationships', {})), attempt(() => rest.get('/circle/actions', {}))])
    this.graph = graph ?? this.graph
    this.actions = actions?.items ?? this.actions
  }

  /** How many offers wait for an answer. */
  get pending(): number {
    return this.actions?.filter((a) => a.state === 'pending').length ?? 0
  }

  /** The characters that take part. */
  get members(): Character[] {
    const ids = new Set(this.graph?.nodes.filter((n) => n.takesPart).map((n) => n.id))
    return characters.all.filter((c) => ids.has(c.id))
  }

  /** join lets a character take part, or no longer. */
  async join(c: Character, on: boolean): Promise<boolean> {
    const path = { id: c.id }
    const ok = await succeeds(async () => {
      if (on) return rest.post('/circle/characters/{id}/init', { path })
      const { version } = await rest.get('/characters/{id}', { path })
      const settings = await rest.get('/characters/{id}/settings', { path })
      return rest.put('/characters/{id}/settings', { path, body: { ...settings, circle: { ...settings.circle, enabled: false } }, ifMatch: version })
    })
    this.touch()
    return ok
  }
}

/** nameOf is what a member is called: the user is always "You". */
export const nameOf = (id: string, name = '') => (id === '' || id === session.user?.id ? common.you : plain(characters.name(id) || name) || common.unnamed)

/** toOf is nameOf inside of a sentence. */
export const toOf = (id: string, name = '') => (id === '' || id === session.user?.id ? w.you : nameOf(id, name))

/** address is that of a part of the circle. */
export function address(part = '', query: Record<string, string> = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString()
  return '/circle' + (part && '/' + part) + (search && '?' + search)
}
