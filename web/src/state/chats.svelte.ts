// The chats of the user, the newest first.

import { finer, glimpse, plain, second, time } from '../lib/format'
import { language } from '../lib/language.svelte'
import { go } from '../lib/router.svelte'
import { attempt, succeeds } from '../lib/notes.svelte'
import type { Conversation } from '../lib/types'
import { characters } from './characters.svelte'
import { deletion } from './deletion.svelte'
import { listen, rest } from './server'

/** Which chats to list. */
export interface Filter {
  query: string
  tag: string
  archived: boolean
}

let list = $state.raw<Conversation[]>([])
const visible = $derived(list.filter((c) => !deletion.hides(c.id) && !deletion.hides(c.characterId)))

// Where the pages of a list go on; null is the end.
let cursors = new Map<string, string | null>()
const reading = new Set<string>()
let searched = ''
let timer: ReturnType<typeof setTimeout> | undefined

const nameOf = (c: Conversation) => plain(c.title || characters.name(c.characterId))

// What tells chats of one title with one character apart: when each began, as precisely as is
// needed.
const begun = $derived.by(() => {
  const now = language.current + new Date().toDateString()
  if (now !== writtenAt) written.clear()
  writtenAt = now
  const found = new Map<string, string>()
  for (const alike of grouped(visible, (c) => c.characterId + nameOf(c))) if (alike.length > 1) distinguish(alike, 0, found)
  return found
})

// Dates as they are written today, in one language: writing one takes long.
const forms = [time, finer, second]
const written = new Map<string, string>()
let writtenAt = ''

function write(form: number, at: string): string {
  const known = written.get(form + at)
  if (known !== undefined) return known
  const text = forms[form]!(at)
  written.set(form + at, text)
  return text
}

/** distinguish says of each chat when it began, in the first of the forms from one on that no other chat shares; those that share all are numbered. */
function distinguish(alike: Conversation[], form: number, found: Map<string, string>) {
  for (const same of grouped(alike, (c) => write(form, c.createdAt))) {
    if (same.length > 1 && form + 1 < forms.length) distinguish(same, form + 1, found)
    else same.sort((a, b) => (a.id < b.id ? -1 : 1)).forEach((c, i) => found.set(c.id, write(form, c.createdAt) + (i > 0 ? ` (${i + 1})` : '')))
  }
}

function grouped(list: Conversation[], by: (c: Conversation) => string): Conversation[][] {
  const groups = new Map<string, Conversation[]>()
  for (const c of list) {
    const key = by(c)
    const group = groups.get(key)
    if (group) group.push(c)
    else groups.set(key, [c])
  }
  return [...groups.values()]
}

/** beginning is what a title has room for. */
function beginning(message: string, room = 50): string {
  const text = glimpse(message)
  const cut = text.slice(0, room)
  return text.length > room ? cut.slice(0, Math.max(cut.lastIndexOf(' '), room / 2)) + '…' : text
}

const keyOf = (f: Filter) => JSON.stringify([f.archived, f.tag, f.query.trim()])

const recent = (c: Conversation) => c.lastMessage?.createdAt ?? c.updatedAt

listen({
  snapshot: (s) => {
    list = [...s.conversations].sort((a, b) => (recent(a) < recent(b) ? 1 : -1))
    cursors = new Map() // pages are loaded again when they are needed
    searched = ''
  },
  event: (e) => {
    if (e.ev === 'chat.created' || e.ev === 'chat.updated') chats.put(e.data.conversation)
    if (e.ev === 'character.deleted') list = list.filter((c) => c.characterId !== e.data.characterId)
    if (e.ev === 'chat.deleted') list = list.filter((c) => c.id !== e.conversationId)
    if (e.ev === 'message.created' || e.ev === 'message.updated') chats.said(e.conversationId, e.data.message)
  },
})

export const chats = {
  get list() {
    return visible
  },
  get(id: string): Conversation | undefined {
    return list.find((c) => c.id === id)
  },
  /** name is the title of a chat, which others may share. */
  name: nameOf,
  /** begun says when a chat began, if that tells it from others; else it is empty. */
  begun: (c: Conversation): string => begun.get(c.id) ?? '',
  /** title is what a chat is called: chats with one character differ. */
  title(c: Conversation): string {
    return [nameOf(c), begun.get(c.id)].filter(Boolean).join(' · ')
  },
  /** entitle names a chat after its first message, if another one has its title. */
  async entitle(id: string, message: string) {
    const c = this.get(id)
    const title = beginning(message)
    if (!c || !title || !begun.has(id)) return
    const got = await rest.patch('/conversations/{id}', { path: { id }, body: { title } }).catch(() => null)
    if (got) this.put(got)
  },
  put(c: Conversation) {
    list = [c, ...list.filter((old) => old.id !== c.id)].sort((a, b) => (recent(a) < recent(b) ? 1 : -1))
  },
  /** said shows the newest text of a chat in the list. */
  said(id: string, m: { id: string; role: any; text: string; createdAt: string }) {
    const c = this.get(id)
    if (!c || !m.text || m.createdAt < recent(c)) return
    this.put({ ...c, lastMessage: { id: m.id, role: m.role, text: m.text.slice(0, 200), createdAt: m.createdAt } })
  },
  /** load reads a chat that is not among the newest. */
  async load(id: string): Promise<Conversation | undefined> {
    const known = this.get(id)
    if (known) return known
    const c = await attempt(() => rest.get('/conversations/{id}', { path: { id } }))
    if (c && !this.get(id)) this.put(c)
    return c
  },
  /** search adds what the server finds to the list; the newest are there already. */
  search(f: Filter) {
    const key = keyOf(f)
    if (key === searched || (!f.query.trim() && !f.tag && !f.archived)) return
    searched = key
    clearTimeout(timer)
    timer = setTimeout(() => void this.more(f), 150)
  },
  /** more loads pages until one has a new chat. */
  async more(f: Filter) {
    const key = keyOf(f)
    if (reading.has(key)) return
    reading.add(key)
    const q = f.query.trim().slice(0, 100)
    const pages = cursors
    for (let found = false; !found && pages.get(key) !== null; ) {
      const cursor = pages.get(key)
      const page = await attempt(() => rest.get('/conversations', { query: { limit: 200, archived: f.archived, ...(q && { q }), ...(f.tag && { tag: f.tag }), ...(cursor && { cursor }) } }))
      if (!page) break
      pages.set(key, page.nextCursor)
      const known = new Set(list.map((c) => c.id))
      const added = page.items.filter((c) => !known.has(c.id))
      found = added.length > 0
      if (found) list = [...list, ...added].sort((a, b) => (recent(a) < recent(b) ? 1 : -1))
    }
    reading.delete(key)
  },
  /** remove deletes a chat; it can be undone for a while. */
  remove(c: Conversation, text: string) {
    deletion.begin(c.id, text, () => rest.delete('/conversations/{id}', { path: { id: c.id } }))
  },
  /** resume shows the last chat with a character; the first one begins. */
  async resume(characterId: string) {
    const last = (all: Conversation[]) => all.find((c) => c.characterId === characterId && !c.archived && !deletion.hides(c.id))
    let found = last(list)
    if (!found) {
      const page = await attempt(() => rest.get('/conversations', { query: { characterId, archived: false, limit: 50 } }))
      if (!page) return
      found = last(page.items)
      if (found) this.put(found)
    }
    if (found) go('/chats/' + found.id)
    else await this.create(characterId)
  },
  /** purge deletes a chat so that nothing of it is left on the server. */
  async purge(c: Conversation) {
    if (await succeeds(() => rest.delete('/conversations/{id}', { path: { id: c.id }, query: { purge: true } }))) list = list.filter((other) => other.id !== c.id)
  },
  /** create begins a chat with a character and shows it. */
  async create(characterId: string) {
    const c = await attempt(() => rest.post('/conversations', { body: { characterId } }))
    if (!c) return
    this.put(c)
    go('/chats/' + c.id)
  },
}
