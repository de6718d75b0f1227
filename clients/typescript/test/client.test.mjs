import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client } from '../dist/index.js'
import { at, event, fakeTimers, outcome, server, settle } from './helpers.mjs'

const ids = { generationId: 'g', conversationId: 'c', messageId: 'm' }
const delta = (off, text) => ({ ev: 'gen.delta', at: 0, ...ids, off, data: { text, part: 'text' } })
const ended = (seq, text) => [
  event(seq, 'message.updated', { ...ids, data: { message: { id: 'm', generationId: 'g', status: 'complete', text, swipes: [] } } }),
  event(seq + 1, 'gen.done', { ...ids, data: { status: 'done' } }),
]
const attached = (text, status = 'streaming', error) => ({ ...ids, status, off: 0, text, generation: { kind: 'reply', status, error } })

function client(t, options = {}) {
  const pass = fakeTimers(t)
  const fake = server()
  const calls = []
  const pages = [{ epoch: 'e', seq: 10, conversations: [] }]
  const fetch = async (url) => (calls.push(url), new Response(JSON.stringify(await pages.shift())))
  const c = new Client({ base: 'http://server', token: 'secret', deviceId: 'd', position: at(10), WebSocket: fake.FakeSocket, fetch, ...options })
  t.after(() => c.connection.close())
  c.connection.open()
  const answer = (cmd, data, more = {}) => {
    const f = fake.last().commands.findLast((f) => f.cmd === cmd)
    assert.ok(f, `no ${cmd}`)
    fake.last().say({ id: f.id, ok: true, data, ...more })
    return settle()
  }
  return { c, pass, calls, pages, answer, ...fake }
}

/** collect runs through a stream of replies; texts has them, and how it ended. */
function collect(stream) {
  const texts = []
  const all = (async () => { for await (const r of stream) texts.push(r.text) })()
  all.catch(() => {}) // the test looks later
  return { texts, end: () => outcome(all) }
}

test('send yields the reply as it grows, over a cut, to its stored text', async (t) => {
  const { c, pass, answer, last } = client(t)
  last().welcome()
  const { texts, end } = collect(c.send('c', 'Hello', { whenBusy: 'queue' }))
  await settle()
  const [frame] = last().commands
  assert.deepEqual(Object.keys(frame.data).sort(), ['clientMsgId', 'conversationId', 'text', 'whenBusy'])
  last().cut()
  await pass(500)
  last().welcome()
  assert.deepEqual(last().commands, [frame]) // the same message under the same key
  await answer('chat.send', { generationId: 'g' })
  await answer('gen.attach', attached('Good'))
  last().say(delta(4, ' eve'))
  await settle()
  last().cut()
  await pass(1000)
  last().welcome({ active: [{ ...ids, off: 20 }] })
  await answer('gen.attach', { ...attached(''), off: 8, text: 'ning, yo' })
  last().say(...ended(11, 'Good evening, you.'))
  assert.deepEqual(await end(), { value: undefined })
  assert.deepEqual(texts, ['Good', 'Good eve', 'Good evening, yo', 'Good evening, you.'])
})

test('a reply that ended while the client was away for long is asked for', async (t) => {
  const { c, pass, pages, answer, last } = client(t)
  last().welcome()
  const { texts, end } = collect(c.send('c', 'Hello'))
  await settle()
  await answer('chat.send', { generationId: 'g' })
  await answer('gen.attach', attached('Good'))
  pages.unshift({ epoch: 'e', seq: 900, conversations: [] })
  last().cut()
  await pass(500)
  last().welcome({ resumed: false, reason: 'too_old', seq: 900 })
  await settle()
  await answer('gen.attach', attached('Good evening.', 'done'))
  assert.deepEqual(await end(), { value: undefined })
  assert.deepEqual(texts, ['Good', 'Good evening.'])
})

test('a failed generation throws, whether its end was seen or not', async (t) => {
  const { c, answer, last } = client(t)
  last().welcome()
  const seen = collect(c.watch('g'))
  await settle()
  await answer('gen.attach', attached('Go'))
  last().say(event(11, 'gen.failed', { ...ids, data: { error: { code: 'upstream_timeout', detail: 'It took too long.' } } }))
  assert.equal((await seen.end()).error.code, 'upstream_timeout')
  assert.deepEqual(seen.texts, ['Go'])

  const missed = collect(c.watch('old'))
  await settle()
  await answer('gen.attach', attached('', 'failed', { code: 'empty_reply', detail: 'Nothing.' }))
  assert.equal((await missed.end()).error.code, 'empty_reply')
})

test('two loops over one reply both get it, and one may leave', async (t) => {
  const { c, answer, last } = client(t)
  last().welcome()
  last().say(delta(0, 'One'))
  const all = [collect(c.watch('g')), collect(c.watch('g'))]
  for await (const r of c.watch('g')) {
    assert.equal(r.text, 'One')
    break
  }
  last().say(delta(3, ' two'))
  await settle()
  last().say(...ended(11, 'One two'))
  for (const { texts, end } of all) {
    assert.deepEqual(await end(), { value: undefined })
    assert.deepEqual(texts, ['One', 'One two'])
  }
  assert.deepEqual(last().commands, []) // it was known
})

test('close ends the loops', async (t) => {
  const { c, last } = client(t)
  last().welcome()
  last().say(delta(0, 'One'))
  const known = collect(c.watch('g'))
  const asked = collect(c.watch('g2'))
  await settle()
  c.connection.close()
  for (const { end } of [known, asked]) assert.equal((await end()).error.code, 'cancelled')
})

test('callbacks: snapshot, events, replies and their end', async (t) => {
  const told = []
  const { last } = client(t, {
    position: null,
    snapshot: (s) => told.push(['snapshot', s.seq]),
    event: (e) => told.push(['event', e.ev]),
    reply: (r) => told.push(['reply', r.text]),
    ended: (r, how) => told.push(['ended', r.text, how?.ev]),
    state: (s) => told.push(['state', s]),
  })
  last().welcome()
  await settle()
  last().say(delta(0, 'Hi'), ...ended(11, 'Hi.'))
  assert.deepEqual(told.map((x) => x.join(' ')), ['state connecting', 'snapshot 10', 'state open', 'reply Hi', 'event gen.delta', 'event message.updated', 'ended Hi. gen.done', 'event gen.done'])
})

test('missed reads all pages, and says when to load again', async (t) => {
  const { c, calls, pages } = client(t)
  const page = (seqs, more, resumed = true) => ({ resumed, epoch: 'e', seq: seqs.at(-1) ?? 0, more, events: seqs.map((s) => event(s)) })
  pages.splice(0, 1, page([11, 12], true), page([13], false), page([], false, false))
  const got = []
  for await (const e of c.missed(at(10))) got.push(e.seq)
  assert.deepEqual(got, [11, 12, 13])
  assert.deepEqual(calls.map((u) => u.split('?')[1]), ['epoch=e&since=10', 'epoch=e&since=12'])
  await assert.rejects(c.missed(at(1)).next(), { code: 'conflict' })
})
