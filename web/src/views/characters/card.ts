// Character cards: the fields of V2 and V3 cards are in data and repeated at the top
// level, those of V1 cards and of the NodeST app are at the top level.

import { isObject, put, read, type Doc, type Path } from '../../documents/path'

const mirrored = ['name', 'description', 'personality', 'scenario', 'first_mes', 'mes_example', 'tags']

/** where is the path of a field in a card. */
export function where(card: unknown, field: string): Path {
  const inData = read(card, ['spec']) && isObject(read(card, ['data']))
  const first = inData ? ['data', field] : [field]
  const second = inData ? [field] : ['data', field]
  return read(card, first) === undefined && read(card, second) !== undefined ? second : first
}

export const valueOf = (card: unknown, field: string): unknown => read(card, where(card, field))

/** putField changes a field, and its copy at the top level if there is one. */
export function putField(card: Doc, field: string, value: unknown): Doc {
  const path = where(card, field)
  const changed = put(card, path, value)
  return path.length > 1 && mirrored.includes(field) && Object.hasOwn(card, field) ? put(changed, [field], value) : changed
}

/** putExtension changes a member inside of the extensions. */
export const putExtension = (card: Doc, path: Path, value: unknown): Doc => put(card, [...where(card, 'extensions'), ...path], value)
export const extension = (card: unknown, path: Path): unknown => read(card, [...where(card, 'extensions'), ...path])
