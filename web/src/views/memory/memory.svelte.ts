// The memory of one character: what can be done with it, and when it has changed.

import type { Body } from '@nodest/client'
import { attempt, notes, succeeds } from '../../lib/notes.svelte'
import { common } from '../../lib/words'
import { listen, rest } from '../../state/server'
import type { BulkAction, BulkDone, BulkFilter, Fact, Imported, Suggestion } from './types'
import { memoryWords as w } from './words'

type Create = Exclude<Body<'post', '/characters/{id}/memories'>, undefined>
type Change = Exclude<Body<'patch', '/characters/{id}/memories/{mid}'>, undefined>

const pieces = 200 // ids in a request

export class Memory {
  /** Grows when facts or suggestions have changed: read again what is shown. */
  changed = $state(0)
  /** Grows when a summary of any chat has changed. */
  summarised = $state(0)
  /** Grows when a document has changed. */
  documented = $state(0)
  /** Grows when a dream has ended. */
  dreamed = $state(0)
  /** The suggestions that wait for a decision. */
  open = $state.raw<Suggestion[]>([])
  moreOpen = $state(false)
  /** The fact whose form is open. It stays open when the fact leaves a list. */
  editing = $state.raw<Fact | null>(null)
  private timer: ReturnType<typeof setTimeout> | undefined
  private stop: () => void

  constructor(readonly id: string) {
    this.stop = listen({
      snapshot: () => {
        this.touch()
        this.documented++
        this.dreamed++
      },
      event: (e) => {
        if (e.ev === 'memory.written' && e.data.characterId === this.id) this.touch()
        if (e.ev === 'memory.suggestion') this.touch()
        if (e.ev === 'memory.summary') this.summarised++
        if (e.ev === 'memory.document' && e.data.characterId === this.id) this.documented++
        if (e.ev === 'dream.finished' && e.data.characterId === this.id) this.dreamed++
      },
    })
    void this.readSuggestions()
  }

  close() {
    this.stop()
    clearTimeout(this.timer)
  }

  /** touch has everything read again soon; many changes at once are one. */
  private touch() {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      this.changed++
      void this.readSuggestions()
    }, 120)
  }

  private get path() {
    return { id: this.id }
  }

  private async readSuggestions() {
    const page = await attempt(() => rest.get('/characters/{id}/memories/suggestions', { path: this.path, query: { limit: 100 } }))
    if (!page) return
    this.open = page.items
    this.moreOpen = page.nextCursor !== null
  }

  /** do changes something. The server tells of it too, but the page need not wait. */
  private async do(f: () => Promise<unknown>): Promise<boolean> {
    const ok = await succeeds(f)
    this.touch() // even if it failed: what is shown may be old
    return ok
  }

  /** add throws a Failure: the form shows it. */
  async add(body: Create) {
    await rest.post('/characters/{id}/memories', { path: this.path, body })
    this.touch()
  }

  /** edit throws a Failure: the form shows it. */
  async edit(f: Fact, body: Change) {
    await rest.patch('/characters/{id}/memories/{mid}', { path: { ...this.path, mid: f.id }, body })
    this.touch()
  }

  mark(f: Fact, body: { pinned: boolean } | { locked: boolean } | { shareable: boolean }) {
    return this.do(() => rest.patch('/characters/{id}/memories/{mid}', { path: { ...this.path, mid: f.id }, body }))
  }

  /** versions of a fact, oldest first. */
  async versions(id: string): Promise<Fact[]> {
    return (await rest.get('/characters/{id}/memories/{mid}/history', { path: { ...this.path, mid: id } })).items
  }

  async archive(f: Fact) {
    if (!(await this.do(() => rest.delete('/characters/{id}/memories/{mid}', { path: { ...this.path, mid: f.id } })))) return
    notes.show(w.factArchived, { action: { label: common.undo, run: () => void this.restore(f.id) } })
  }

  restore(id: string) {
    return this.do(() => rest.post('/characters/{id}/memories/{mid}/restore', { path: { ...this.path, mid: id } }))
  }

  /** purge removes a fact, or a text that was said, for good, and further texts with it. */
  async purge(id: string, texts: string[] = []) {
    let said = 0 // lines that still say it
    const ok = await this.do(async () => {
      const gone = await rest.post('/characters/{id}/memories/forget', { path: this.path, body: { ids: [id, ...texts] } })
      said = gone.echoes.length
    })
    if (ok) notes.show(said > 0 ? w.purgedBut(said) : w.purged)
    return ok
  }

  async decide(s: Suggestion, decision: 'accept' | 'reject') {
    if (!(await this.do(() => rest.post('/characters/{id}/memories/suggestions/{sid}', { path: { ...this.path, sid: s.id }, body: { decision } })))) return
    this.open = this.open.filter((o) => o.id !== s.id)
    notes.show(decision === 'accept' ? w.acceptedNote : w.rejectedNote)
  }

  /** bulk changes the facts that a filter matches; many ids go in several requests. */
  async bulk(action: BulkAction, filter: BulkFilter, dryRun: boolean): Promise<BulkDone | undefined> {
    const ids = filter.ids
    const parts = ids ? Array.from({ length: Math.ceil(ids.length / pieces) }, (_, i) => ({ ids: ids.slice(i * pieces, (i + 1) * pieces) })) : [filter]
    let all: BulkDone | undefined
    for (const part of parts) {
      const got = await attempt(() => rest.post('/characters/{id}/memories/bulk', { path: this.path, body: { action, filter: part, dryRun } }))
      if (!got) break
      all = all
        ? { ...got, matched: all.matched + got.matched, changed: all.changed + got.changed, ids: [...all.ids, ...got.ids], conflicts: [...all.conflicts, ...got.conflicts] }
        : got
    }
    if (!dryRun) this.touch()
    return all
  }

  forgetPreview(what: { query: string } | { ids: string[] }) {
    return attempt(() => rest.post('/characters/{id}/memories/forget', { path: this.path, body: { ...what, dryRun: true } }))
  }

  forget(what: { ids: string[] } | { all: true }) {
    return this.do(() => rest.post('/characters/{id}/memories/forget', { path: this.path, body: what }))
  }

  /** import rejects with a Failure. The same key may be used again for the same file. */
  async import(file: File, key: string): Promise<Imported> {
    const form = new FormData()
    form.append('file', file)
    try {
      return await rest.post('/characters/{id}/memories/import', { path: this.path, body: form, key })
    } finally {
      this.touch()
    }
  }

  get exportURL() {
    return rest.url('/characters/{id}/memories/export', this.path)
  }
}

/** address is that of a part of a memory. */
export function address(characterId: string, part = '', query: Record<string, string> = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString()
  return '/memory/' + encodeURIComponent(characterId) + (part && '/' + part) + (search && '?' + search)
}
