// The list of facts as far as it is read, and which of them are selected.

import { SvelteSet } from 'svelte/reactivity'
import { Pages } from '../../lib/pages.svelte'
import { rest } from '../../state/server'
import type { BulkFilter, Fact, FactKind, FactSubject } from './types'

export class Filter {
  kind = $state<FactKind | ''>('')
  subject = $state<FactSubject | ''>('')
  pinned = $state<'' | 'true' | 'false'>('')
  status = $state<'active' | 'retired'>('active')
  conversation = $state('')

  /** The selection in the words of a list or a bulk request. */
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

export class Facts extends Pages<Fact> {
  filter = new Filter()
  selecting = $state(false)
  selected = new SvelteSet<string>()
  all = $state(false) // all that match the filter are selected, read or not

  constructor(characterId: string) {
    const path = { id: characterId }
    super(async (query) => (await rest.get('/characters/{id}/memories', { path, query: { ...this.filter.query, ...query } })) as { items: Fact[]; nextCursor: string | null }, 100)
  }

  override async load() {
    await super.load()
    const known = new Set(this.list.map((f) => f.id))
    for (const id of this.selected) if (!known.has(id)) this.selected.delete(id)
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
