import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import WebSocket, { WebSocketServer } from 'ws'
import { Connection, Failure, Rest } from '../dist/index.js'
import { at, connection, deferred, event, outcome, problem, settle } from './helpers.mjs'

const sends = (socket) => socket.commands.map((f) => f.data.text ?? f.cmd)
const say = (c, text, key) => {
  const sent = c.send('chat.send', { conversationId: 'c', text }, key)
  sent.catch(() => {}) // the test looks later, or does not care
  return sent
}

test('hello names the device and the position, and events follow from there', (t) => {
  const { c, told, last } = connection(t, { client: 'test/1', deltaMs: 80 })
  c.open()
  c.open()
  const hello = last().welcome({ active: [{ generationId: 'g', conversationId: 'c', off: 4 }] })
  assert.equal(last().url, 'ws://server/api/v1/ws')
  assert.equal(last().protocol, 'nodest.v1')
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
  assert.deepEqual(hello, { protocol: 1, client: 'test/1', deviceId: 'd', deltaMs: 80, timeZone, token: 'secret', resume: at(10), batch: true })
  assert.deepEqual(told.active, [{ ids: ['g'], resumed: true }])
  last().say(event(10), event(11), [event(12), event(undefined, 'gen.delta'), event(13)], event(13), event(undefined, 'of.the.future'))
  assert.deepEqual(told.events, [11, 12, 'gen.delta', 13, 'of.the.future'])
  assert.deepEqual(c.position, at(13))
  last().say(event(20, 'skip'), event(21))
  assert.deepEqual(c.position, at(21))
  assert.deepEqual(told.states, ['connecting', 'open'])
})

test('a position that was handed out does not change', (t) => {
  const mine = at(10)
  const seen = []
  const { c, last } = connection(t, { position: mine, event: () => seen.push(c.position) })
  c.open()
  last().welcome()
  last().say(event(11), event(12))
  assert.deepEqual([mine, ...seen], [at(10), at(11), at(12)])
})

test('a hole: it resumes from before it, and takes nothing behind it', async (t) => {
  const { c, told, pass, sockets, last } = connection(t)
  c.open()
  last().welcome()
  last().say([event(11), event(13), event(14), event(undefined, 'gen.delta')])
  assert.deepEqual(told.events, [11])
  assert.notEqual(last().closed, null)
  assert.deepEqual(told.states, ['connecting', 'open', 'waiting'])
  await pass(500)
  assert.equal(sockets.length, 2)
  assert.deepEqual(last().welcome().resume, at(11))
  sockets[0].say(event(12)) // of the socket that was given up
  last().say([event(12), event(13)])
  assert.deepEqual(told.events, [11, 12, 13])
})

test('a mistake of the app in one event costs it no other', async (t) => {
  const told = []
  const { c, last } = connection(t, { event: (e) => { told.push(e.seq); if (e.seq === 11) throw new Error('mistake') } })
  const thrown = []
  t.mock.method(globalThis, 'queueMicrotask', (f) => { try { f() } catch (e) { thrown.push(e.message) } })
  c.open()
  last().welcome()
  last().say([event(11), event(12)])
  assert.deepEqual(told, [11, 12])
  assert.deepEqual(thrown, ['mistake'])
})

test('too old: everything is loaded, and what happens meanwhile is told afterwards', async (t) => {
  const loading = deferred()
  const { c, told, last } = connection(t, { reload: () => loading.promise })
  c.open()
  say(c, 'Hello')
  last().welcome({ resumed: false, reason: 'too_old', seq: 99, active: ['over', 'runs', 'ends'].map((generationId) => ({ generationId, conversationId: 'c', off: 0 })) })
  last().say([event(100, 'gen.done', { generationId: 'over' }), event(101)], event(undefined, 'gen.delta', { generationId: 'runs' }), event(102, 'gen.done', { generationId: 'ends' }))
  await settle()
  assert.deepEqual([told.events, told.active, last().commands], [[], [], []])
  loading.done(at(100))
  await settle()
  assert.deepEqual(told.active, [{ ids: ['runs', 'ends'], resumed: false }]) // the end of the other is in what was loaded
  assert.deepEqual(told.events, [101, 'gen.delta', 102])
  assert.deepEqual(c.position, at(102))
  assert.deepEqual(sends(last()), ['Hello'])
})

test('a connection that is cut while everything is loaded loads again', async (t) => {
  const loads = []
  const { c, told, pass, last } = connection(t, { position: null, reload: () => (loads.push(deferred()), loads.at(-1).promise) })
  c.open()
  assert.equal(last().welcome().resume, undefined)
  last().say(event(8))
  last().cut()
  await pass(500)
  last().welcome({ seq: 20 })
  last().say(event(21))
  loads[0].done(at(7)) // too late: it must not move the position, nor let events through
  await settle()
  assert.deepEqual([c.position, told.events, told.states.at(-1)], [null, [], 'connecting'])
  loads[1].done(at(20))
  await settle()
  assert.deepEqual([c.position, told.events, told.states.at(-1)], [at(21), [21], 'open'])
})

test('it tries again where loading fails, or a backup was restored meanwhile', async (t) => {
  const answers = [Promise.reject(new Failure({ code: 'network', detail: '' })), at(3, 'new'), at(4, 'new')]
  const { c, told, pass, last } = connection(t, { reload: async () => answers.shift() })
  c.open()
  last().welcome({ resumed: false })
  await settle()
  await pass(500)
  last().welcome({ resumed: false })
  await settle()
  await pass(1000)
  assert.deepEqual(last().open().resume, at(3, 'new'))
  last().say({ id: 'hello', ok: true, data: { epoch: 'new', seq: 3, resumed: true, active: [] } }, event(4))
  assert.deepEqual(told.events, [4])
})

test('commands are sent again in their order, under their keys', async (t) => {
  const { c, pass, last } = connection(t)
  const one = say(c, 'one', 'key-1')
  c.open()
  const two = say(c, 'two')
  last().open()
  assert.deepEqual(sends(last()), [])
  last().welcome()
  const three = say(c, 'three')
  assert.deepEqual(sends(last()), ['one', 'two', 'three'])
  const before = last().commands
  assert.equal(before[0].key, 'key-1')
  last().say({ id: before[1].id, ok: true, data: { generationId: 'g' } })
  assert.deepEqual((await outcome(two)).value, { generationId: 'g' })
  last().cut()
  const four = say(c, 'four')
  await pass(500)
  last().welcome()
  assert.deepEqual(sends(last()), ['one', 'three', 'four'])
  assert.deepEqual(last().commands.slice(0, 2), [before[0], before[2]])
  const [first, , fourth] = last().commands
  last().say([{ id: fourth.id, ok: true, data: {}, replay: true }, { id: first.id, ok: false, error: problem('busy', { status: 409, retry: 'later' }) }])
  assert.deepEqual((await outcome(four)).value, {})
  assert.equal((await outcome(one)).error.code, 'busy')
  assert.equal(await outcome(three), 'waits')
})

test('commands that callbacks send are sent once, after those that wait', async (t) => {
  const { c, last } = connection(t, {
    state: (s) => s === 'open' && say(c, 'of state'),
    active: () => void c.send('gen.attach', { generationId: 'g' }).catch(() => {}),
  })
  say(c, 'first')
  c.open()
  last().welcome()
  assert.deepEqual(sends(last()), ['first', 'of state', 'gen.attach'])
})

test('many commands keep to the limit of the server', async (t) => {
  const { c, pass, last } = connection(t)
  const sent = Array.from({ length: 30 }, (_, i) => say(c, String(i)))
  c.open()
  last().welcome()
  assert.equal(last().commands.length, 16)
  const answer = (i, more = { ok: true, data: {} }) => last().say({ id: last().commands[i].id, ...more })
  for (let i = 0; i < 4; i++) answer(i)
  assert.equal(last().commands.length, 20)
  answer(4, { ok: false, error: problem('rate_limited', { status: 429, retry: 'later', retryAfterMs: 200 }) })
  answer(5)
  assert.equal(last().commands.length, 20) // it waits
  assert.equal(await outcome(sent[4]), 'waits')
  await pass(200)
  assert.deepEqual(sends(last()).slice(20), ['4', '20'])
  last().cut(4429)
  await pass(200)
  await pass(300)
  last().welcome()
  assert.deepEqual(sends(last())[0], '4')
  c.close()
  const results = await Promise.all(sent.map(outcome))
  assert.equal(results.filter((r) => 'value' in r).length, 5)
})

test('a limit that lasts long fails the command', async (t) => {
  const { c, last } = connection(t)
  c.open()
  last().welcome()
  const sent = say(c, 'one')
  last().say({ id: last().commands[0].id, ok: false, error: problem('rate_limited', { retryAfterMs: 3_600_000 }) })
  assert.equal((await outcome(sent)).error.retryAfterMs, 3_600_000)
})

test('going away: it comes back when the server said', async (t) => {
  const { c, told, pass, sockets, last } = connection(t)
  c.open()
  last().welcome()
  last().say({ ev: 'server.going_away', at: 0, data: { inMs: 10_000, retryAfterMs: 4_000 } })
  assert.equal(sockets.length, 1)
  last().cut(1012)
  c.wake() // even if the app comes to the foreground
  await pass(3_999)
  assert.equal(sockets.length, 1)
  await pass(1)
  assert.equal(sockets.length, 2)
  last().welcome()
  last().cut()
  await pass(1000)
  assert.equal(sockets.length, 3) // the next time counts for itself
  assert.equal(told.states.at(-1), 'connecting')
})

test('waits grow to 30 seconds, and are short again after a good connection', async (t) => {
  const { c, pass, sockets, last } = connection(t)
  c.open()
  for (const wait of [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
    const n = sockets.length
    last().cut()
    await pass(wait - 1)
    assert.equal(sockets.length, n, `after ${wait}`)
    await pass(1)
    assert.equal(sockets.length, n + 1)
  }
  last().welcome()
  await pass(60_001)
  last().cut()
  await pass(500)
  assert.equal(sockets.length, 10)
})

test('some close codes end it', async (t) => {
  for (const code of [4400, 4403, 4409, 4426]) {
    const { c, told, pass, sockets, last } = connection(t)
    c.open()
    const sent = say(c, 'x')
    last().open()
    last().say({ id: 'hello', ok: false, error: problem('bad_request') })
    last().cut(code, 'the reason')
    assert.equal(told.states.at(-1), 'closed')
    const { error } = await outcome(sent)
    assert.deepEqual([error.code, error.message], ['cancelled', 'The server ended the connection: the reason.'])
    await pass(60_000)
    assert.equal(sockets.length, 1)
    assert.equal(told.signedOut, 0)
    t.mock.reset()
    t.mock.timers.reset()
  }
})

test('others do not', async (t) => {
  const { c, pass, sockets, last } = connection(t)
  c.open()
  for (const code of [1000, 1001, 1006, 1011, 1012, 4408, 4429, 4503]) {
    const n = sockets.length
    last().cut(code)
    await pass(30_000)
    assert.equal(sockets.length, n + 1, String(code))
  }
})

test('another user than before: signed out, and nothing is sent in that name', async (t) => {
  const { c, told, pass, last } = connection(t)
  c.open()
  last().welcome({ user: 'mia' })
  last().cut()
  const sent = say(c, 'x')
  await pass(500)
  last().welcome({ user: 'jo' })
  assert.deepEqual([told.signedOut, told.states.at(-1), last().commands], [1, 'closed', []])
  assert.equal((await outcome(sent)).error.code, 'cancelled')
  c.open()
  last().welcome({ user: 'jo' })
  assert.equal(told.states.at(-1), 'open')
})

test('4401: signed out; with another token it goes on', async (t) => {
  const rest = new Rest({ base: 'http://server', token: 'old' })
  const { c, told, pass, sockets, last } = connection(t, { rest })
  c.open()
  last().welcome()
  last().say(event(11))
  const sent = say(c, 'x')
  last().cut(4401)
  assert.deepEqual([told.signedOut, told.states.at(-1)], [1, 'closed'])
  assert.equal((await outcome(sent)).error.code, 'cancelled')
  await pass(60_000)
  assert.equal(sockets.length, 1)
  rest.token = 'new'
  c.open()
  const hello = last().open()
  assert.deepEqual([hello.token, hello.resume], ['new', at(11)])
})

test('wake: a ping that is not answered in 5 seconds ends the connection', async (t) => {
  const { c, told, pass, sockets, last } = connection(t)
  c.wake()
  assert.equal(sockets.length, 0)
  c.open()
  c.wake() // it is connecting
  last().welcome()
  c.wake()
  assert.deepEqual(last().commands, [{ cmd: 'ping' }])
  await pass(4_999)
  last().say({ ev: 'pong', now: 1 })
  await pass(10_000)
  assert.equal(told.states.at(-1), 'open')
  c.wake()
  await pass(5_000)
  assert.equal(told.states.at(-1), 'waiting')
  assert.notEqual(last().closed, null)
  c.wake() // at once
  assert.equal(sockets.length, 2)
  last().welcome()
  await pass(1000) // the wait was dropped
  assert.equal(sockets.length, 2)
})

test('wake also checks a connection that is loading', async (t) => {
  const { c, pass, sockets, last } = connection(t, { reload: () => new Promise(() => {}) })
  c.open()
  last().welcome({ resumed: false })
  c.wake()
  await pass(5_000)
  await pass(500)
  assert.equal(sockets.length, 2)
})

test('a server that does not answer hello is given up', async (t) => {
  const { c, pass, sockets, last } = connection(t)
  c.open()
  last().open()
  await pass(10_000)
  await pass(500)
  assert.equal(sockets.length, 2)
})

test('close rejects what waits, and ends everything', async (t) => {
  const { c, told, pass, sockets, last } = connection(t)
  c.open()
  last().welcome()
  const sent = [say(c, 'one'), say(c, 'two')]
  c.close()
  c.close()
  for (const s of sent) assert.equal((await outcome(s)).error.code, 'cancelled')
  assert.equal(last().closed, 1000)
  last().say(event(11))
  last().cut(1000)
  await pass(60_000)
  assert.deepEqual(told.events, [])
  assert.equal(sockets.length, 1)
  assert.deepEqual(told.states, ['connecting', 'open', 'closed'])
  const later = say(c, 'three') // waits until it is opened again
  c.open()
  last().welcome()
  assert.deepEqual(sends(last()), ['three'])
  last().say({ id: last().commands[0].id, ok: true, data: {} })
  assert.deepEqual((await outcome(later)).value, {})
})

test('close within an event ends the batch', (t) => {
  const told = []
  const { c, last } = connection(t, { event: (e) => { told.push(e.seq); c.close() } })
  c.open()
  last().welcome()
  last().say([event(11), event(12)])
  assert.deepEqual(told, [11])
})

test('without a token, a ticket of the cookie is used once', async (t) => {
  const answers = []
  const fetch = async (url, request) => {
    assert.equal(url, 'http://server/api/v1/ws/tickets')
    const answer = deferred()
    answers.push(Object.assign(answer, { request }))
    request.signal.addEventListener('abort', () => answer.failed(request.signal.reason))
    return answer.promise
  }
  const ticket = (name) => new Response(JSON.stringify({ ticket: name, expiresIn: 30 }), { status: 201 })
  const { c, told, pass, sockets, last } = connection(t, { rest: new Rest({ base: 'http://server', fetch }) })
  c.open()
  c.wake() // the network changed: the first call may never end
  assert.ok(answers[0].request.signal.aborted)
  answers[0].done(ticket('first'))
  answers[1].done(ticket('second'))
  await settle()
  assert.deepEqual(sockets.map((s) => s.url), ['ws://server/api/v1/ws?ticket=second'])
  assert.equal(last().welcome().token, null)
  last().cut()
  await pass(500)
  await pass(10_000) // no answer
  assert.ok(answers[2].request.signal.aborted)
  await pass(1_000)
  answers[3].done(new Response(JSON.stringify(problem('rate_limited', { status: 429, retry: 'later', retryAfterMs: 9_000 })), { status: 429 }))
  await settle()
  await pass(8_999)
  assert.equal(answers.length, 4)
  await pass(1)
  answers[4].done(new Response(JSON.stringify(problem('unauthenticated', { status: 401 })), { status: 401 }))
  await settle()
  assert.deepEqual([told.signedOut, told.states.at(-1), sockets.length], [1, 'closed', 1])
})

test('the class of the package ws works, and a refused connection is no accident', async (t) => {
  const http = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(http, 'listening')
  const base = `http://127.0.0.1:${http.address().port}`
  t.mock.method(Math, 'random', () => 0) // come back at once
  let connections = 0
  http.on('connection', (socket) => {
    if (++connections === 1) return socket.terminate()
    socket.on('message', (text) => {
      const f = JSON.parse(text)
      const reply = f.cmd === 'hello' ? { epoch: 'e', seq: 10, resumed: true, active: [] } : { echo: f.data.text }
      socket.send(JSON.stringify([{ id: f.id, ok: true, data: reply }]))
    })
  })
  const c = new Connection({ rest: new Rest({ base, token: 'secret' }), deviceId: 'd', WebSocket, position: at(10), event() {}, reload: async () => at(10) })
  c.open()
  assert.deepEqual(await say(c, '🌊'), { echo: '🌊' })
  c.close()
  for (const s of http.clients) s.terminate()
  await new Promise((done) => http.close(done))

  const waiting = deferred()
  const refused = new Connection({ rest: new Rest({ base, token: 'secret' }), deviceId: 'd', WebSocket, event() {}, reload: async () => at(10), state: (s) => s === 'waiting' && waiting.done() })
  refused.open()
  await waiting.promise
  refused.close()
  refused.open()
  refused.close() // while it connects
})
