// The history of the facts, newest first. The server lists versions by when they were
// made; what was archived is listed by itself and put between them.

import { attempt } from '../../lib/notes.svelte'
import { rest } from '../../state/server'
import type { Fact } from './types'

const page = 100
const most = 1000 // archived facts that get a line of their own

export interface Happening {
  key: string
  at: string
  what: 'learned' | 'changed' | 'archived'
  fact: Fact
  /** The version that it replaced, if it is known. */
  before?: Fact | undefined
  /** The fact that was extracted from the text that ended this one. */
  instead?: Fact | undefined
}

interface Page {
  items: Fact[]
  nextCursor: string | null
}

export class Timeline {
  loaded = $state(false)
  private versions = $state.raw<Fact[]>([])
  private archived = $state.raw<Fact[]>([])
  private cursor = $state<string | null>(null)
  private turn = 0
  private reading = false

  constructor(private characterId: string) {}

  list = $derived.by(() => happenings(this.versions, this.archived, this.cursor !== null))

  get more() {
    return this.cursor !== null
  }

  private async read(status: 'any' | 'retired', cursor: string | null, limit: number): Promise<Page> {
    return (await rest.get('/characters/{id}/memories', { path: { id: this.characterId }, query: { status, limit, ...(cursor && { cursor }) } })) as Page
  }

  async load() {
    const turn = ++this.turn
    await attempt(async () => {
      const archived: Fact[] = []
      for (let cursor: string | null = ''; cursor !== null && archived.length < most; ) {
        const got: Page = await this.read('retired', cursor, 200)
        archived.push(...got.items)
        cursor = got.nextCursor
      }
      const wanted = Math.min(1000, Math.max(page, this.versions.length))
      const versions: Fact[] = []
      let cursor: string | null = ''
      while (cursor !== null && versions.length < wanted) {
        const got: Page = await this.read('any', cursor, Math.min(200, wanted - versions.length))
        versions.push(...got.items)
        cursor = got.nextCursor
      }
      if (turn !== this.turn) return
      this.archived = archived
      this.versions = versions
      this.cursor = cursor
      this.loaded = true
    })
  }

  async next() {
    const turn = this.turn
    const from = this.cursor
    if (from === null || this.reading) return
    this.reading = true
    const got = await attempt(() => this.read('any', from, page))
    this.reading = false
    if (!got || turn !== this.turn) return
    const known = new Set(this.versions.map((f) => f.id))
    this.versions = [...this.versions, ...got.items.filter((f) => !known.has(f.id))]
    this.cursor = got.nextCursor
  }
}

/** happenings puts in order what is known; with more to come, nothing older than that. */
export function happenings(versions: Fact[], archived: Fact[], more: boolean): Happening[] {
  const place = (f: { rootId: string; version: number }) => `${f.rootId} ${f.version}`
  const byPlace = new Map(versions.map((f) => [place(f), f]))
  const list: Happening[] = versions.map((fact) => ({
    key: fact.id,
    at: fact.createdAt,
    what: fact.version > 1 ? 'changed' : 'learned',
    fact,
    before: byPlace.get(place({ ...fact, version: fact.version - 1 })),
  }))
  const oldest = more ? (versions.at(-1)?.createdAt ?? '') : ''
  const learned = new Map<string, Fact[]>()
  for (const f of versions) for (const e of f.evidence) learned.set(e.revisionId, (learned.get(e.revisionId) ?? []).concat(f))
  for (const fact of archived) {
    if (fact.updatedAt < oldest) continue
    const ended = fact.endedBy?.flatMap((e) => learned.get(e.revisionId) ?? []) ?? []
    const instead = ended.find((f) => f.rootId !== fact.rootId && f.subject === fact.subject && f.kind === fact.kind)
    list.push({ key: fact.id + ' archived', at: fact.updatedAt, what: 'archived', fact, instead })
  }
  return list.sort((a, b) => (a.at === b.at ? 0 : a.at < b.at ? 1 : -1))
}
