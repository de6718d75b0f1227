// Short notes at the edge of the page: what went wrong, what can be undone.

import { Failure } from '@nodest/client'
import { point } from './fields'
import { errorText } from './words'

export interface Note {
  id: number
  text: string
  kind: 'info' | 'error'
  action?: { label: string; run: () => void }
  /** It stays until it is dismissed. */
  lasting?: boolean
}

let list = $state<Note[]>([])
let next = 1

export const notes = {
  get list() {
    return list
  },
  show(text: string, options: Partial<Omit<Note, 'id' | 'text'>> = {}) {
    const note: Note = { id: next++, text, kind: 'info', ...options }
    list = [...list.filter((n) => n.text !== text).slice(-3), note]
    if (note.kind === 'info' && !note.lasting) setTimeout(() => notes.dismiss(note.id), note.action ? 10_000 : 5_000)
    return note.id
  },
  dismiss(id: number) {
    list = list.filter((n) => n.id !== id)
  },
}

/** attempt says what went wrong. It returns undefined then, and the result otherwise. */
export async function attempt<T>(f: () => Promise<T>): Promise<T | undefined> {
  try {
    return await f()
  } catch (e) {
    if (!(e instanceof Failure)) throw e
    if (e.code === 'unauthenticated' || e.code === 'cancelled') return undefined
    const text = errorText(e)
    notes.show(text, { kind: 'error' })
    if (e.errors[0]) point(e.errors[0].field, text)
    return undefined
  }
}

/** succeeds is attempt for calls without a result. */
export async function succeeds(f: () => Promise<unknown>): Promise<boolean> {
  return (await attempt(async () => (await f(), true))) ?? false
}
