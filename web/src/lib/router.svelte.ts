// Addresses of the page are hashes (/#/chats/019a…), so the server needs to know none
// of them, and a view is one line in views/index.ts.

import type { Component } from 'svelte'

export interface View {
  /** For example /chats/:id; a name that ends in ? may be missing. */
  path: string
  load: () => Promise<{ default: Component<any> }>
}

export interface Match {
  view: View
  params: Record<string, string>
}

const read = () => (location.hash.startsWith('#/') ? location.hash.slice(1) : '/')

let path = $state(read())
let guard: ((to: string) => boolean) | null = null

addEventListener('hashchange', () => {
  const to = read()
  if (to !== path && guard && !guard(to)) history.replaceState(null, '', '/#' + path)
  else path = to
})

/** guardLeaving asks f before another address is shown; the returned function ends that. */
export function guardLeaving(f: (to: string) => boolean): () => void {
  guard = f
  return () => {
    if (guard === f) guard = null
  }
}

export const route = {
  /** The address as it is, without the query. */
  get path() {
    return path.split('?')[0]!
  },
  get query() {
    return new URLSearchParams(path.split('?')[1] ?? '')
  },
}

/**
 * go shows another address; replace leaves no step back to this one, and does nothing if
 * the user is just going elsewhere.
 */
export function go(to: string, replace = false) {
  if (replace) {
    if (read() !== path) return
    history.replaceState(null, '', '/#' + to)
    path = to
  } else location.hash = to
}

/** messageAt is the address that opens a chat at a message. */
export const messageAt = (e: { conversationId: string; messageId: string }) => `/chats/${encodeURIComponent(e.conversationId)}?message=${encodeURIComponent(e.messageId)}`

/** decode decodes a part of an address; undefined if it cannot be an id. */
function decode(part: string | undefined): string | undefined {
  try {
    const value = decodeURIComponent(part ?? '')
    return /^\.{0,2}$/.test(value) ? undefined : value
  } catch {
    return undefined
  }
}

/** match finds the view of a path; the first that fits. */
export function match(views: View[], path: string): Match | undefined {
  const given = path.split('/').filter(Boolean)
  for (const view of views) {
    const parts = view.path.split('/').filter(Boolean)
    const params: Record<string, string> = {}
    const fits = parts.every((part, i) => {
      if (!part.startsWith(':')) return part === given[i]
      const value = decode(given[i])
      if (value !== undefined) params[part.replace(/[:?]/g, '')] = value
      return value !== undefined || (part.endsWith('?') && given[i] === undefined)
    })
    if (fits && given.length <= parts.length) return { view, params }
  }
  return undefined
}
