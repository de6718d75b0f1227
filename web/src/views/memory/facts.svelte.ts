// The list of facts as far as it is read, and which of them are selected.

import { SvelteSet } from 'svelte/reactivity'
import { attempt } from '../../lib/notes.svelte'
import { rest } from '../../state/server'
import type { BulkFilter, Fact, FactKind, FactSubject } from './types'

const first = 100
const most = 200 // the longest page

export class Filter {
  kind = $state<FactKind | ''>('')
  subject = $state<FactSubject | ''>('')
  pinned = $state<'' | 'true' | 'false'>('')
  status = $state<'active' | 'retired'>('active')
  conversation = $state('')

  /** What a list and a bulk request call it. */
  get query() {
    return {
      ...(this.kind && { kind: this.kind }),
      ...(this.subject && { subject: this.subject }),
      ...(this.pinned && { pinned: this.pinned === 'true' }),
      ...(this.conversation && { conversation: this.conversation }),
      status: this.status,
    }
  }

  get bulk(): BulkFilter {
    const query = this.query
    return Object.keys(query).length > 1 ? query : { ...query, all: true }
  }

  /** How many members differ from the default. */
  get size() {
    return Object.keys(this.query).length - 1 + (this.status === 'retired' ? 1 : 0)
  }
}

export class Facts {
  list = $state.raw<Fact[]>([])
  loaded = $state(false)
  filter = new Filter()
  selecting = $state(false)
  selected = new SvelteSet<string>()
  all = $state(false) // all that match the filter are selected, read or not
  private cursor: string | null = null
  private turn = 0
  private reading = false

  constructor(private characterId: string) {}

  /** load reads as much again as was shown. */
  async load() {
    const turn = ++this.turn
    const wanted = Math.min(1000, Math.max(first, this.list.length))
    const list: Fact[] = []
    let cursor: string | null = ''
    while (cursor !== null && list.length < wanted) {
      const page = await this.read(cursor, Math.min(most, wanted - list.length))
      if (!page || turn !== this.turn) return
      list.push(...page.items)
      cursor = page.nextCursor
    }
    this.list = list
    this.cursor = cursor
    this.loaded = true
    const known = new Set(list.map((f) => f.id))
    for (const id of this.selected) if (!known.has(id)) this.selected.delete(id)
  }

  async more() {
    if (this.cursor === null || this.reading) return
    const turn = this.turn
    this.reading = true
    const page = await this.read(this.cursor, first)
    this.reading = false
    if (!page || turn !== this.turn) return
    const known = new Set(this.list.map((f) => f.id))
    this.list = [...this.list, ...page.items.filter((f) => !known.has(f.id))]
    this.cursor = page.nextCursor
  }

  private async read(cursor: string, limit: number) {
    const page = await attempt(() => rest.get('/characters/{id}/memories', { path: { id: this.characterId }, query: { ...this.filter.query, limit, ...(cursor && { cursor }) } }))
    return page as { items: Fact[]; nextCursor: string | null } | undefined
  }

  select(on: boolean) {
    this.selecting = on
    this.all = false
    this.selected.clear()
  }

  toggle(id: string) {
    if (this.all) {
      this.all = false
      for (const f of this.list) this.selected.add(f.id)
    }
    if (!this.selected.delete(id)) this.selected.add(id)
  }

  has(id: string) {
    return this.all || this.selected.has(id)
  }
}
