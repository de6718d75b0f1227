// Regex scripts: one script, a list of them, or a group of the NodeST app with a list.

import type { Dialect } from '../lib/types'
import { isObject, list, put, read, type Doc, type Path } from './path'

/** A kind of texts that scripts run over, by SillyTavern's number: user 1, reply 2, slash command 3, world info 5, reasoning 6. */
export type Place = 1 | 2 | 3 | 5 | 6

/** The texts that scripts can be tested on, replies first. */
export const places: Record<Dialect, Place[]> = { nodest: [2, 1], sillytavern: [2, 1, 3, 5, 6] }

export interface Script {
  path: Path
  script: Doc
}

/** Where the list of a document is; null = the document is one script. */
export function listPath(doc: unknown): Path | null {
  if (Array.isArray(doc)) return []
  return Array.isArray(read(doc, ['scripts'])) ? ['scripts'] : null
}

export function scripts(doc: unknown): Script[] {
  const at = listPath(doc)
  if (!at) return isObject(doc) ? [{ path: [], script: doc }] : []
  return list(doc, at).flatMap((script, i) => (isObject(script) ? [{ path: [...at, i], script }] : []))
}

/** replaceList is the document with other scripts; one script becomes a list. */
export function replaceList(doc: unknown, all: unknown[]): unknown {
  const at = listPath(doc)
  return at ? put(doc, at, all) : all
}

export const all = (doc: unknown): unknown[] => {
  const at = listPath(doc)
  return at ? list(doc, at) : isObject(doc) ? [doc] : []
}

export function blankScript(name: string): Doc {
  return {
    id: crypto.randomUUID?.() ?? String(Date.now()),
    scriptName: name,
    findRegex: '',
    replaceString: '',
    trimStrings: [],
    placement: [2],
    disabled: false,
    markdownOnly: false,
    promptOnly: false,
    runOnEdit: true,
    substituteRegex: 0,
    minDepth: null,
    maxDepth: null,
  }
}
