// Calls that the API documents only since the branches any and tree: written out here
// until the types are generated from them.

import { rest } from '../state/server'
import type { Dialect } from '../lib/types'

const post = rest.post.bind(rest) as unknown as (path: string, input: { body: unknown }) => Promise<any>

export interface TestedEntry {
  id: string
  name: string
  fires: boolean
  why?: 'fixed' | 'constant' | 'key'
  key?: string
  reason?: string
  tokens?: number
}

/** testBook says which entries of a world book a text makes fire. */
export const testBook = (document: unknown, dialect: Dialect, text: string): Promise<{ entries: TestedEntry[]; tokens: number }> =>
  post('/worldbooks/test', { body: { document, dialect, text } })

export interface TestedScript {
  id?: string
  name?: string
  ran: boolean
  replacements: number
  reason?: string
  detail?: string
}

/** What a text is for: regex scripts may be only for one of these. */
export type Purpose = 'store' | 'display' | 'prompt'

/** testScripts runs regex scripts over a text; placement 1 = of the user, 2 = a reply. */
export const testScripts = (document: unknown, text: string, placement: 1 | 2, purpose: Purpose): Promise<{ text: string; scripts: TestedScript[] }> =>
  post('/regexscripts/test', { body: { document, text, placement, isMarkdown: purpose === 'display', isPrompt: purpose === 'prompt' } })

export interface Imported {
  kind: string
  id: string
  warnings: { path: string; code: string; detail: string }[]
  [object: string]: unknown
}

/** importFile stores a file of any kind. */
export const importFile = (form: FormData): Promise<Imported> => post('/import', { body: form })

/** What the branch tree adds to characters and chats. */
export const tagsOf = (o: object | undefined): string[] => {
  const tags = (o as { tags?: unknown } | undefined)?.tags
  return Array.isArray(tags) ? tags.filter((t) => typeof t === 'string') : []
}
