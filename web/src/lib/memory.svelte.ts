// The memory of one character and the summary of one chat: what the panel shows and
// what it can do about it.

import { request } from './api'
import type { Chat } from './chat.svelte'

/** One remembered fact, as it is now. */
export interface Fact {
  id: string
  text: string
  kind: string
  subject: string
  origin: string
  pinned: boolean
  status: string
  version: number
  conversationId?: string
  evidence: { conversationId: string; messageId: string; seq: number }[] | null
  createdAt: string
  shown?: boolean // in a list: a search finds it
}

/** A fact or a text of a chat that fits, with its score from 0 to 1. */
export interface Found {
  id: string
  layer: 'fact' | 'exchange'
  memory?: Fact
  said?: { conversationId: string; messageId: string; seq: number; role: string; name?: string; text: string; at: string }
  score: number
  parts: { vector: number; lexical: number; recency: number; importance: number }
  signals?: Record<string, number> // what made the score
}

export interface Suggestion {
  id: string
  memoryId: string | null // that it would change; null = it is a new one
  event: 'ADD' | 'UPDATE' | 'DELETE'
  text?: string
  reason: string
}

/** What "forget everything about" would remove. */
export interface Forgotten {
  memories: { id: string; layer: string; text: string; score: number }[]
  truncated: boolean
}

export interface Summary {
  id: string
  summary: string
  timestamp: number
  originalMessagesRange: { start: number; end: number }
  method: 'llm' | 'extractive' | 'user'
  stale?: boolean
  active: boolean
}

interface Page<T> {
  items: T[]
  nextCursor: string | null
}

/** textOf is what a unit says, whichever layer it is of. */
export const textOf = (f: Found): string => f.memory?.text ?? f.said?.text ?? ''

/** The kinds that a user can choose for a memory. */
export const kinds = ['profile', 'preference', 'event', 'plan', 'promise', 'relation', 'other']

export class Memories {
  facts = $state<Fact[]>([])
  found = $state<Found[] | null>(null) // null = nothing is searched for
  suggestions = $state<Suggestion[]>([])
  summary = $state<Summary | null>(null) // the one in force
  hidden = $state(false) // show the facts that were set aside
  query = $state('')
  more = $state('') // cursor of further facts; '' = no more

  private turn = 0

  constructor(
    private chat: Chat,
    readonly characterId: string,
    readonly conversationId: string,
  ) {}

  private get base() {
    return `/characters/${this.characterId}/memories`
  }

  get exportPath() {
    return '/api/v1' + this.base + '/export'
  }

  /** load reads the facts, or what is searched for, and the suggestions. */
  async load() {
    const turn = ++this.turn
    const query = this.query.trim()
    const list = `${this.base}?limit=${Math.min(200, Math.max(50, this.facts.length))}${this.hidden ? '&status=retired' : ''}`
    await this.chat.attempt(async () => {
      const [facts, open, found] = await Promise.all([
        request<Page<Fact>>('GET', list),
        request<Page<Suggestion>>('GET', this.base + '/suggestions?state=open&limit=50'),
        query ? request<Page<Found>>('GET', `${this.base}?limit=20&q=${encodeURIComponent(query)}`) : null,
      ])
      if (turn !== this.turn) return // something newer was asked for meanwhile
      this.facts = facts.items
      this.more = facts.nextCursor ?? ''
      this.suggestions = open.items
      this.found = found?.items ?? null
    })
  }

  async loadMore() {
    const turn = ++this.turn
    await this.chat.attempt(async () => {
      const path = `${this.base}?limit=50&cursor=${encodeURIComponent(this.more)}${this.hidden ? '&status=retired' : ''}`
      const page = await request<Page<Fact>>('GET', path)
      if (turn !== this.turn) return
      this.facts = [...this.facts, ...page.items]
      this.more = page.nextCursor ?? ''
    })
  }

  /** change does one thing and shows what has become of it. */
  private async change(method: string, path: string, body?: unknown): Promise<boolean> {
    const ok = await this.chat.attempt(() => request(method, this.base + path, body))
    if (ok) await this.load()
    return ok
  }

  add(text: string, kind: string) {
    return this.change('POST', '', { text, kind })
  }

  edit(id: string, text: string) {
    return this.change('PATCH', '/' + id, { text })
  }

  pin(f: Fact) {
    return this.change('PATCH', '/' + f.id, { pinned: !f.pinned })
  }

  retire(id: string) {
    return this.change('DELETE', '/' + id)
  }

  restore(id: string) {
    return this.change('POST', `/${id}/restore`)
  }

  purge(id: string) {
    return this.change('DELETE', `/${id}?purge=true`)
  }

  decide(s: Suggestion, decision: 'accept' | 'reject') {
    return this.change('POST', '/suggestions/' + s.id, { decision })
  }

  /** about shows what would be forgotten; null when it cannot be told. */
  async about(query: string): Promise<Forgotten | null> {
    let found: Forgotten | null = null
    await this.chat.attempt(async () => {
      found = await request<Forgotten>('POST', this.base + '/forget', { query, dryRun: true })
    })
    return found
  }

  /** forget removes exactly what was shown. */
  forget(shown: Forgotten) {
    return this.change('POST', '/forget', { ids: shown.memories.map((m) => m.id) })
  }

  /** import takes a file of an export; it returns in words what became of it. */
  async import(file: File): Promise<string> {
    const form = new FormData()
    form.append('file', file)
    let told = ''
    await this.chat.attempt(async () => {
      const { memories: got } = await request<{ memories: { created: number; skipped: number; failed: { line: number; detail: string }[] } }>('POST', this.base + '/import', form)
      told = `${got.created} imported, ${got.skipped} already known`
      const first = got.failed[0]
      if (first) told += `, ${got.failed.length} invalid (line ${first.line}: ${first.detail})`
    })
    await this.load()
    return told
  }

  private get summaries() {
    return `/conversations/${this.conversationId}/summaries`
  }

  async loadSummary() {
    await this.chat.attempt(async () => {
      const page = await request<Page<Summary>>('GET', this.summaries)
      this.summary = page.items.find((s) => s.active) ?? null
    })
  }

  private async rewrite(method: string, path: string, body?: unknown): Promise<boolean> {
    const ok = await this.chat.attempt(() => request(method, this.summaries + path, body))
    if (ok) await this.loadSummary()
    return ok
  }

  summarise() {
    return this.rewrite('POST', '?wait=1', {})
  }

  editSummary(s: Summary, summary: string) {
    return this.rewrite('PATCH', '/' + s.id, { summary })
  }

  deleteSummary(s: Summary) {
    return this.rewrite('DELETE', '/' + s.id)
  }
}

/** recalledFor is what was recalled for a reply, best first. */
export async function recalledFor(messageId: string): Promise<Found[]> {
  return (await request<Page<Found>>('GET', `/messages/${messageId}/memories`)).items
}
