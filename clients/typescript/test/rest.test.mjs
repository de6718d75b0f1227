import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Failure, Rest } from '../dist/index.js'
import { deferred, fakeTimers, problem, settle } from './helpers.mjs'

const json = (value, status = 200) => new Response(JSON.stringify(value), { status })

/** rest returns a Rest whose calls get the given answers; one may be an error, a promise or a function of the request. */
function rest(...answers) {
  const calls = []
  const fetch = async (url, request) => {
    calls.push({ url, ...request })
    const answer = await answers.shift()
    if (answer instanceof Error) throw answer
    return typeof answer === 'function' ? answer(request) : answer
  }
  return { calls, rest: new Rest({ base: 'http://server//', token: 'secret', deviceId: 'd-1', fetch }) }
}

test('paths and queries are filled', async () => {
  const { rest: r, calls } = rest(json({ items: [] }))
  await r.get('/conversations/{id}/messages', { path: { id: 'a/b ?#é' }, query: { limit: 20, before: undefined } })
  assert.equal(calls[0].url, 'http://server/api/v1/conversations/a%2Fb%20%3F%23%C3%A9/messages?limit=20')
  assert.equal(calls[0].headers.Authorization, 'Bearer secret')
  assert.equal(calls[0].headers['X-Device-Id'], 'd-1')
  assert.equal(calls[0].headers['Idempotency-Key'], undefined)
  assert.equal(r.url('/search', {}, { q: 'a&b=c', n: null }), 'http://server/api/v1/search?q=a%26b%3Dc')
  assert.equal(r.url('/me'), 'http://server/api/v1/me')
})

test('no value of a path leads to another path', () => {
  const { rest: r } = rest()
  for (const id of ['..', '.', '', undefined, null]) assert.throws(() => r.url('/characters/{id}/avatar', { id }), TypeError, String(id))
})

test('bodies: JSON, forms and versions', async () => {
  const { rest: r, calls } = rest(json({ id: 'c' }), json({}), new Response(null, { status: 204 }), new Response(null, { status: 202 }))
  assert.deepEqual(await r.patch('/conversations/{id}', { path: { id: 'c' }, body: { title: 'New' }, ifMatch: 3, key: 'k' }), { id: 'c' })
  assert.equal(calls[0].method, 'PATCH')
  assert.equal(calls[0].body, '{"title":"New"}')
  assert.equal(calls[0].headers['Content-Type'], 'application/json')
  assert.equal(calls[0].headers['If-Match'], '"3"')
  assert.equal(calls[0].headers['Idempotency-Key'], 'k')
  const form = new FormData()
  await r.post('/characters', { body: form })
  assert.equal(calls[1].body, form)
  assert.equal(calls[1].headers['Content-Type'], undefined)
  assert.equal(await r.delete('/conversations/{id}', { path: { id: 'c' } }), undefined)
  assert.equal(await r.post('/auth/logout'), undefined)
})

test('problems become Failures', async () => {
  const { rest: r, calls } = rest(json(problem('conflict', { status: 409, details: { current: { version: 4 } }, errors: [{ field: 'title' }] }), 409))
  await assert.rejects(r.get('/me'), (e) => {
    assert.ok(e instanceof Failure && e instanceof Error)
    assert.deepEqual([e.code, e.status, e.retry, e.message, e.details.current.version, e.errors[0].field], ['conflict', 409, 'no', 'It did not work.', 4, 'title'])
    return true
  })
  assert.equal(calls.length, 1)
})

test('answers of a proxy become Failures', async (t) => {
  const pass = fakeTimers(t)
  const { rest: r, calls } = rest(new Response('<h1>Not found</h1>', { status: 404 }), new Response('', { status: 401 }), new Response('', { status: 413 }), new Response('', { status: 429, headers: { 'Retry-After': '3' } }), new Response('<h1>Bad gateway</h1>', { status: 502 }), json({ id: 'u' }))
  await assert.rejects(r.get('/me'), { code: 'internal', status: 404, retry: 'no' })
  await assert.rejects(r.get('/me'), { code: 'unauthenticated', status: 401 })
  await assert.rejects(r.get('/me'), { code: 'too_large', status: 413, retry: 'no' })
  await assert.rejects(r.get('/me'), { code: 'rate_limited', retry: 'later', retryAfterMs: 3000 })
  const again = r.get('/me')
  await settle()
  await pass(500)
  assert.deepEqual(await again, { id: 'u' })
  assert.equal(calls.length, 6)
})

test('a call is made again under its key, with its body', async (t) => {
  const pass = fakeTimers(t)
  const cut = new Response(new ReadableStream({ pull: (c) => c.error(new Error('cut')) }))
  const { rest: r, calls } = rest(new TypeError('refused'), json(problem('shutting_down', { status: 503, retry: 'same', retryAfterMs: 2500 }), 503), cut, json({ id: 'c' }))
  const made = r.post('/conversations', { body: { characterId: 'x' } })
  await settle()
  await pass(500)
  await pass(2499)
  assert.equal(calls.length, 2)
  await pass(1)
  await pass(2000)
  assert.deepEqual(await made, { id: 'c' })
  assert.equal(new Set(calls.map((c) => c.headers['Idempotency-Key'])).size, 1)
  assert.ok(calls.every((c) => c.body === '{"characterId":"x"}'))
})

test('it gives up after four attempts', async (t) => {
  const pass = fakeTimers(t)
  const { rest: r, calls } = rest(...Array.from({ length: 9 }, () => new TypeError('refused')))
  const failed = assert.rejects(r.get('/me'), { code: 'network', status: 0 })
  for (let i = 0; i < 6; i++) await settle().then(() => pass(4000))
  await failed
  assert.equal(calls.length, 4)
})

test('a call is aborted: on its way, while it waits, and while its answer is read', async (t) => {
  fakeTimers(t)
  const abort = { name: 'AbortError' }
  const way = deferred()
  const stop = new AbortController()
  const { rest: r, calls } = rest(way.promise, new TypeError('refused'), (request) => { request.signal.throwIfAborted() }, (request) => new Response(new ReadableStream({ start: (c) => request.signal.addEventListener('abort', () => c.error(request.signal.reason)) })))
  const one = r.get('/me', { signal: stop.signal })
  stop.abort()
  way.done(stop.signal.reason)
  await assert.rejects(one, abort)

  const second = new AbortController()
  const two = r.get('/me', { signal: second.signal })
  await settle()
  second.abort() // the clock stands still: it does not wait for the next attempt
  await assert.rejects(two, abort)

  const third = new AbortController()
  const three = r.get('/me', { signal: third.signal })
  await settle()
  third.abort()
  await assert.rejects(three, abort)
  assert.equal(calls.length, 4)
})
