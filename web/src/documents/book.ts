// World books: entries in an object by key (or in a list), as SillyTavern and the NodeST
// app write them. The two differ in what a missing member means.

import type { Dialect } from '../lib/types'
import { flag, isObject, list, number, put, read, text, texts, type Doc, type Path } from './path'

export interface Row {
  id: string
  path: Path
  entry: Doc
}

/** rows lists the entries in the order of the document. */
export function rows(book: unknown): Row[] {
  const entries = read(book, ['entries'])
  if (typeof entries !== 'object' || !entries) return []
  const out: Row[] = []
  for (const [id, entry] of Object.entries(entries)) {
    if (isObject(entry)) out.push({ id, path: ['entries', Array.isArray(entries) ? Number(id) : id], entry })
  }
  return out
}

const missing = {
  nodest: { constant: true, order: 0, depth: 0 },
  sillytavern: { constant: false, order: 100, depth: 4 },
}

/** seen is an entry with what its missing members mean. */
export function seen(row: Row, dialect: Dialect) {
  const { entry } = row
  const m = missing[dialect]
  return {
    name: text(entry, ['comment']) || (dialect === 'nodest' ? row.id : ''),
    content: text(entry, ['content']),
    enabled: !flag(entry, ['disable'], false),
    constant: flag(entry, ['constant'], m.constant),
    keys: texts(entry, ['key']),
    secondary: texts(entry, ['keysecondary']),
    position: number(entry, ['position'], 0),
    order: number(entry, ['order'], m.order),
    depth: number(entry, ['depth'], m.depth),
  }
}

export type Seen = ReturnType<typeof seen>

function newId(book: unknown): string {
  const ids = rows(book).map((r) => r.id)
  if (ids.some((id) => !/^\d+$/.test(id))) {
    for (let n = ids.length + 1; ; n++) if (!ids.includes('entry-' + n)) return 'entry-' + n
  }
  return String(ids.reduce((most, id) => Math.max(most, Number(id) + 1), 0))
}

/** insert adds an entry at the end and returns its key. */
export function insert(book: Doc, entry: Doc): { book: Doc; id: string } {
  if (Array.isArray(read(book, ['entries']))) {
    const before = list(book, ['entries'])
    return { book: put(book, ['entries'], [...before, entry]), id: String(before.length) }
  }
  const id = newId(book)
  const named = Object.hasOwn(entry, 'uid') && /^\d+$/.test(id) ? { ...entry, uid: Number(id) } : entry
  return { book: put(book, ['entries', id], named), id }
}

/** blank is a new entry that works as it is once it has a text. */
export function blank(dialect: Dialect): Doc {
  const entry = { comment: '', content: '', key: [], constant: false, disable: false, position: 4, order: 100, depth: 4 }
  return dialect === 'nodest' ? entry : { uid: 0, ...entry, position: 0, keysecondary: [], selective: true, selectiveLogic: 0, probability: 100, useProbability: true }
}

export function remove(book: Doc, ids: Set<string>): Doc {
  const entries = read(book, ['entries'])
  if (Array.isArray(entries)) return put(book, ['entries'], entries.filter((_, i) => !ids.has(String(i))))
  return put(book, ['entries'], Object.fromEntries(Object.entries(isObject(entries) ? entries : {}).filter(([id]) => !ids.has(id))))
}

/** change sets members of several entries at once. */
export function change(book: Doc, ids: Set<string>, members: Doc): Doc {
  const entries = read(book, ['entries'])
  const changed = (entry: unknown, id: string | number) => (ids.has(String(id)) && isObject(entry) ? { ...entry, ...members } : entry)
  if (Array.isArray(entries)) return put(book, ['entries'], entries.map(changed))
  return put(book, ['entries'], Object.fromEntries(Object.entries(isObject(entries) ? entries : {}).map(([id, e]) => [id, changed(e, id)])))
}

export type Sorting = 'book' | 'name' | 'order' | 'place' | 'state'

/** sorted orders rows for the eye; the document keeps its order. */
export function sorted(all: { row: Row; seen: Seen }[], by: Sorting) {
  const compare: Record<Exclude<Sorting, 'book'>, (a: Seen, b: Seen) => number> = {
    name: (a, b) => a.name.localeCompare(b.name),
    order: (a, b) => a.order - b.order,
    place: (a, b) => a.position - b.position || b.depth - a.depth || a.order - b.order,
    state: (a, b) => Number(b.enabled) - Number(a.enabled) || Number(b.constant) - Number(a.constant),
  }
  return by === 'book' ? all : [...all].sort((a, b) => compare[by](a.seen, b.seen))
}
