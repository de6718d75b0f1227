// Reading and changing values inside of JSON documents. Documents are never changed in
// place: put returns another one that shares all that is equal, with every unknown
// member and the order of the members as they were.

export type Path = readonly (string | number)[]
export type Doc = Record<string, unknown>

export const isObject = (v: unknown): v is Doc => typeof v === 'object' && v !== null && !Array.isArray(v)

export function read(doc: unknown, path: Path): unknown {
  let at = doc
  for (const key of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined
    at = (at as Doc)[key]
  }
  return at
}

/** text reads a text; a number is one too. */
export function text(doc: unknown, path: Path): string {
  const v = read(doc, path)
  return typeof v === 'string' ? v : typeof v === 'number' ? String(v) : ''
}

export const flag = (doc: unknown, path: Path, missing: boolean): boolean => {
  const v = read(doc, path)
  return typeof v === 'boolean' ? v : missing
}

export const number = (doc: unknown, path: Path, missing: number): number => {
  const v = read(doc, path)
  const n = typeof v === 'string' && v.trim() ? Number(v) : v
  return typeof n === 'number' && Number.isFinite(n) ? n : missing
}

export const list = (doc: unknown, path: Path): unknown[] => {
  const v = read(doc, path)
  return Array.isArray(v) ? v : []
}

export const texts = (doc: unknown, path: Path): string[] => list(doc, path).filter((v) => typeof v === 'string')

/** put sets the value at a path; undefined removes it. */
export function put<T>(doc: T, path: Path, value: unknown): T {
  const [key, ...rest] = path
  if (key === undefined) return value as T
  if (Array.isArray(doc)) {
    const copy = [...doc]
    if (rest.length === 0 && value === undefined) copy.splice(Number(key), 1)
    else copy[Number(key)] = put(doc[Number(key)], rest, value)
    return copy as T
  }
  const from: Doc = isObject(doc) ? doc : {}
  if (rest.length === 0 && value === undefined) {
    const { [key]: _, ...others } = from
    return others as T
  }
  return { ...from, [key]: put(Object.hasOwn(from, key) ? from[key] : undefined, rest, value) } as T
}

/** move takes the element at one place of a list to another. */
export function move<T>(items: readonly T[], from: number, to: number): T[] {
  const copy = [...items]
  copy.splice(Math.max(0, Math.min(to, items.length - 1)), 0, ...copy.splice(from, 1))
  return copy
}

/** same compares documents; what they share costs nothing. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || !a || !b || Array.isArray(a) !== Array.isArray(b)) return false
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((k) => Object.hasOwn(b, k) && same((a as Doc)[k], (b as Doc)[k]))
}

/**
 * merge joins two changes of one document: what only the other side changed is taken
 * over, and mine counts where both changed the same. both names those places.
 */
export function merge(base: unknown, mine: unknown, theirs: unknown, at: Path = []): { value: unknown; both: Path[] } {
  if (same(mine, theirs) || same(base, theirs)) return { value: mine, both: [] }
  if (same(base, mine)) return { value: theirs, both: [] }
  if (!isObject(mine) || !isObject(theirs)) return { value: mine, both: [at] }
  const value: Doc = {}
  const both: Path[] = []
  for (const key of new Set([...Object.keys(theirs), ...Object.keys(mine)])) {
    const joined = merge(read(base, [key]), read(mine, [key]), read(theirs, [key]), [...at, key])
    both.push(...joined.both)
    if (joined.value !== undefined) Object.defineProperty(value, key, { value: joined.value, enumerable: true, configurable: true, writable: true })
  }
  return { value, both }
}
