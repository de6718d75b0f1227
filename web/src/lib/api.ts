// The REST side of the API: what the page loads, uploads and changes.

export interface Character {
  id: string
  name: string
  hasAvatar: boolean
  version: number
}

export interface Conversation {
  id: string
  characterId: string
  title: string
  headId: string | null
  lastMessage?: { text: string; createdAt: string } | null
  /** Only in the answer to a fork: it exists from its event chat.created on. */
  copying?: true
  updatedAt: string
}

export interface Swipe {
  id: string
  text: string
  model?: string
}

export interface Message {
  id: string
  conversationId: string
  parentId: string | null
  role: string
  name: string
  text: string
  swipes: Swipe[]
  swipeIndex: number
  rev: number
  status: string
  createdAt: string
  memoryIds: string[] // recalled for the text that is shown
  clientMsgId?: string
  error?: { code: string; detail: string } | null
}

/** One end of a conversation's tree. */
export interface Branch {
  head: Message
  shown: boolean
  messageCount: number
}

/** A save point; automatic ones were made by a restore, of what was shown before. */
export interface SavePoint {
  id: string
  timestamp: number
  description: string
  previewText: string
  messageCount: number
  automatic?: boolean
}

export interface Snapshot {
  conversations: Conversation[]
  characters: Character[]
  epoch: string
  seq: number
}

/** A failed request: the server's code, and words for people. */
export class Failure extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

/** request sends JSON (or a form) and returns the answer; it throws a Failure. */
export async function request<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = {}
  if (method !== 'GET') headers['Idempotency-Key'] = newKey()
  let content: BodyInit | undefined
  if (body instanceof FormData) content = body
  else if (body !== undefined) {
    headers['Content-Type'] = 'application/json'
    content = JSON.stringify(body)
  }
  let answer: Response
  try {
    answer = await fetch('/api/v1' + path, { method, headers, body: content ?? null })
  } catch {
    throw new Failure('network', 'Cannot reach the server.')
  }
  if (answer.status === 204) return undefined as T
  const data = await answer.json().catch(() => null)
  if (!answer.ok) throw new Failure(data?.code ?? 'internal', data?.detail ?? `The server answered ${answer.status}.`)
  return data as T
}

/** newKey makes an idempotency key; it works on plain HTTP too. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('')
}
