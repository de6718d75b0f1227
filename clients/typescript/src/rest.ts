import { Failure, failureOf } from './failure.js'
import type { paths } from './generated.js'
import { newKey, pause } from './key.js'

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'
type Base = '/api/v1'

/** The paths that take a method, without /api/v1. */
export type Path<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? (P extends `${Base}${infer Short}` ? Short : never) : never
}[keyof paths]

type Operation<M extends Method, P extends string> = `${Base}${P}` extends keyof paths ? paths[`${Base}${P}`][M & keyof paths[`${Base}${P}`]] : never
type Of<O, K extends string> = O extends { parameters: Record<K, infer V> } ? V : O extends { parameters: { [key in K]?: infer V } } ? V : never
type JSONOf<T> = T extends { content: { 'application/json': infer V } } ? V : undefined
type Success<R> = JSONOf<R[keyof R & (200 | 201 | 202)]>

/** The JSON that a successful call returns; undefined if there is none. */
export type Answer<M extends Method, P extends Path<M>> = Operation<M, P> extends { responses: infer R } ? Success<R> : never

/** The JSON that a call takes. */
export type Body<M extends Method, P extends Path<M>> = Operation<M, P> extends { requestBody?: infer B } ? JSONOf<NonNullable<B>> : never

/** The input of a call: the values of its path and query, and its body. */
export interface Input<M extends Method, P extends Path<M>> {
  path?: Of<Operation<M, P>, 'path'>
  query?: Of<Operation<M, P>, 'query'>
  body?: Body<M, P> | FormData
  /** The version that the call replaces: without it the last write wins. */
  ifMatch?: number
  /** Idempotency key; default a new one. */
  key?: string
  signal?: AbortSignal
}

export interface RestOptions {
  /** Address of the server; default: the origin of the page. */
  base?: string
  /** Bearer token; without it the cookie of the browser counts. */
  token?: string
  /** Id of the device: its own events name it. */
  deviceId?: string
  fetch?: typeof fetch
}

/** How often a call is made that may succeed with the same key. */
const attempts = 4

/** Rest makes typed calls of the REST API. */
export class Rest {
  readonly base: string
  token: string | undefined
  private readonly deviceId: string | undefined
  private readonly fetch: typeof fetch

  constructor(options: RestOptions = {}) {
    this.base = (options.base ?? '').replace(/\/+$/, '')
    this.token = options.token
    this.deviceId = options.deviceId
    this.fetch = options.fetch ?? ((...a) => fetch(...a))
  }

  get<P extends Path<'get'>>(path: P, input: Input<'get', P> = {}) {
    return this.call('get', path, input)
  }
  post<P extends Path<'post'>>(path: P, input: Input<'post', P> = {}) {
    return this.call('post', path, input)
  }
  put<P extends Path<'put'>>(path: P, input: Input<'put', P> = {}) {
    return this.call('put', path, input)
  }
  patch<P extends Path<'patch'>>(path: P, input: Input<'patch', P> = {}) {
    return this.call('patch', path, input)
  }
  delete<P extends Path<'delete'>>(path: P, input: Input<'delete', P> = {}) {
    return this.call('delete', path, input)
  }

  /** url returns the address of a path, for links and images. */
  url(path: string, values: Record<string, unknown> = {}, query: Record<string, unknown> = {}): string {
    const filled = path.replace(/\{(\w+)\}/g, (_, name) => segment(name, values[name]))
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== null) search.append(name, String(value))
    return this.base + '/api/v1' + filled + (String(search) && '?' + search)
  }

  private async call<M extends Method, P extends Path<M>>(method: M, path: P, input: Input<M, P>): Promise<Answer<M, P>> {
    const headers: Record<string, string> = { Accept: 'application/json' }
    if (this.token) headers['Authorization'] = 'Bearer ' + this.token
    if (this.deviceId) headers['X-Device-Id'] = this.deviceId
    if (method !== 'get') headers['Idempotency-Key'] = input.key ?? newKey()
    if (input.ifMatch !== undefined) headers['If-Match'] = `"${input.ifMatch}"`
    let body: BodyInit | null = null
    if (typeof FormData !== 'undefined' && input.body instanceof FormData) body = input.body
    else if (input.body !== undefined) {
      headers['Content-Type'] = 'application/json'
      body = JSON.stringify(input.body)
    }
    const url = this.url(path, input.path as Record<string, unknown>, input.query as Record<string, unknown>)
    const request: RequestInit = { method: method.toUpperCase(), headers, body, ...(input.signal && { signal: input.signal }) }
    for (let attempt = 1; ; attempt++) {
      const failure = await this.once<Answer<M, P>>(url, request)
      if (!(failure instanceof Failure)) return failure.value
      if (attempt === attempts || failure.retry !== 'same') throw failure
      await pause(Math.max(failure.retryAfterMs, 250 * 2 ** attempt * Math.random()), input.signal)
    }
  }

  private async once<T>(url: string, request: RequestInit): Promise<{ value: T } | Failure> {
    let answer: Response
    try {
      answer = await this.fetch(url, request)
    } catch (e) {
      if (request.signal?.aborted) throw e
      return new Failure({ code: 'network', detail: 'Cannot reach the server.', retry: 'same' })
    }
    if (!answer.ok) return failureOf(answer)
    try {
      const text = await answer.text()
      return { value: text === '' ? (undefined as T) : JSON.parse(text) }
    } catch (e) {
      if (request.signal?.aborted) throw e
      return new Failure({ code: 'network', detail: 'The connection was lost while the answer was read.', retry: 'same' })
    }
  }
}

/** segment is a value of a path. No value may lead to another path. */
function segment(name: string, value: unknown): string {
  const text = String(value ?? '')
  if (text === '' || text === '.' || text === '..') throw new TypeError(`the path needs a value for ${name}`)
  return encodeURIComponent(text)
}
