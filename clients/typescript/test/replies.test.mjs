import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Replies } from '../dist/index.js'
import { deferred, settle } from './helpers.mjs'

const ids = { generationId: 'g', conversationId: 'c', messageId: 'm', at: 0 }
const delta = (off, text, part = 'text') => ({ ev: 'gen.delta', ...ids, off, data: { text, part } })
const block = (part, state) => ({ ev: 'gen.block', ...ids, data: { part, state } })
const rewind = (off) => ({ ev: 'gen.rewind', ...ids, off, data: {} })
const done = { ev: 'gen.done', ...ids, seq: 9, data: { status: 'done' } }
const failed = { ev: 'gen.failed', ...ids, seq: 9, data: { error: { code: 'empty_reply', detail: '' } } }
const updated = (text, more = {}) => ({ ev: 'message.updated', seq: 8, ...ids, data: { message: { id: 'm', generationId: 'g', status: 'complete', text, swipes: [], ...more } } })
const running = { generationId: 'g', conversationId: 'c', messageId: 'm', off: 0 }

/** replies returns Replies, the attaches that wait for an answer, and how replies ended. */
function replies() {
  const asked = []
  const ended = []
  let changes = 0
  const connection = {
    send(cmd, data) {
      assert.equal(cmd, 'gen.attach')
      const d = deferred()
      asked.push({ ...data, refuse: () => d.failed(new Error('not found')), answer: (off, text, status = 'streaming', error) => d.done({ ...ids, status, off, text, generation: { kind: 'reply', status, error } }) })
      return d.promise
    },
  }
  const r = new Replies(connection, () => changes++, (reply, how) => ended.push({ text: reply.text, how: how?.ev ?? null }))
  const say = (...events) => events.forEach((e) => r.event(e))
  return { r, asked, ended, say, text: () => r.get('g')?.text, changes: () => changes }
}

test('deltas are joined in order, and duplicates change nothing', () => {
  const { r, say, asked, text, changes } = replies()
  say({ ev: 'gen.started', seq: 1, ...ids, data: { kind: 'reply' } }, { ev: 'gen.stage', ...ids, data: { stage: 'waiting', ms: 1 } })
  assert.equal(r.of('m').stage, 'waiting')
  assert.equal(r.of('m').kind, 'reply')
  say(delta(0, 'Good '), delta(5, 'evening'), delta(0, 'Good '), delta(5, 'even'), delta(3, 'd evening, you'))
  assert.equal(text(), 'Good evening, you')
  assert.equal(changes(), 7)
  assert.deepEqual(asked, [])
})

test('positions count code points', () => {
  const { say, asked, text } = replies()
  say(delta(0, '🌊🌊 '), delta(3, 'by 👩‍🚀'), delta(1, '🌊 by 👩‍🚀!'))
  assert.equal(text(), '🌊🌊 by 👩‍🚀!')
  say(rewind(1), delta(1, '𝒳'))
  assert.equal(text(), '🌊𝒳')
  assert.equal(asked.length, 0)
})

test('a hole is asked for once, from the length of the text', async () => {
  const { say, asked, text } = replies()
  say(delta(0, 'one '), delta(8, 'three '), delta(14, 'four'))
  assert.deepEqual(asked.map((a) => a.off), [4])
  assert.equal(text(), 'one ')
  asked[0].answer(4, 'two three four')
  await settle()
  assert.equal(text(), 'one two three four')
  say(delta(14, 'four'), delta(18, ' five'))
  assert.equal(text(), 'one two three four five')
})

test('a refused attach is asked again with the next delta', async () => {
  const { say, asked, text } = replies()
  say(delta(4, 'two'))
  asked[0].refuse()
  await settle()
  say(delta(7, ' three'))
  asked[1].answer(0, 'one two three')
  await settle()
  assert.equal(text(), 'one two three')
})

test('behind: the delta that follows fits', () => {
  const { say, asked, text } = replies()
  say(delta(0, 'a'), { ev: 'gen.behind', ...ids }, delta(1, 'bcdef'))
  assert.equal(text(), 'abcdef')
  assert.equal(asked.length, 0)
})

test('a rewind takes text and blocks back', () => {
  const { r, say, text } = replies()
  say(delta(0, 'Thoughts'), block('mem', 'open'), delta(0, 'x', 'mem'), rewind(0), delta(0, 'Thoughts', 'reasoning'), delta(0, 'Reply'))
  assert.equal(text(), 'Reply')
  assert.deepEqual(r.get('g').blocks, [])
  assert.equal(r.get('g').reasoning, 'Thoughts')
  say(rewind(5), rewind(9))
  assert.equal(text(), 'Reply')
})

test('reasoning and blocks have positions of their own, and nothing is appended blindly', () => {
  const { r, say, asked } = replies()
  say(delta(0, 'Let me ', 'reasoning'), delta(7, 'think', 'reasoning'), delta(0, 'Let me think', 'reasoning'), delta(20, '…', 'reasoning'))
  assert.equal(r.get('g').reasoning, 'Let me think')
  say(delta(0, 'Hi'), block('mem', 'open'), delta(0, 'likes ', 'mem'), delta(6, 'tea', 'mem'), delta(6, 'tea', 'mem'), delta(30, '?', 'mem'), block('mem', 'close'))
  say(block('mem', 'open'), delta(0, 'second', 'mem'), block('mem', 'close'), delta(9, 'lost', 'mem'))
  say(delta(0, 'begun while we were away', 'websearch'), block('text', 'open'))
  assert.deepEqual(r.get('g').blocks, [{ part: 'mem', text: 'likes tea' }, { part: 'mem', text: 'second' }, { part: 'websearch', text: 'begun while we were away' }])
  assert.equal(r.get('g').text, 'Hi')
  assert.equal(asked.length, 0)
})

test('active after a resume attaches; those that ended are told by events', async () => {
  const { r, say, asked, ended, text } = replies()
  say(delta(0, 'Half'), { ...delta(0, 'other'), generationId: 'g2', messageId: 'm2' })
  r.active([running], true)
  assert.deepEqual(asked.map((a) => [a.generationId, a.off]), [['g', 4]])
  say(delta(4, ' of'))
  asked[0].answer(4, ' of it')
  await settle()
  assert.equal(text(), 'Half of it')
  assert.deepEqual(ended, [])
  assert.ok(r.get('g2'))
})

test('deltas before the answer are no reason to take text back', async () => {
  const { r, say, asked, text } = replies()
  say(delta(0, 'One'), block('mem', 'open'), delta(0, 'kept', 'mem'))
  r.active([running], true)
  say(delta(3, ' two'))
  asked[0].answer(3, ' two three')
  await settle()
  assert.equal(text(), 'One two three')
  assert.equal(r.get('g').blocks.length, 1)
})

test('active without a resume ends what runs no longer', () => {
  const { r, say, ended } = replies()
  say(delta(0, 'Half'), { ...delta(0, 'other'), generationId: 'g2', messageId: 'm2' })
  r.active([{ ...running, generationId: 'g2', messageId: 'm2' }, { ...running, generationId: 'g3', messageId: 'm3' }], false)
  assert.deepEqual(ended, [{ text: 'Half', how: null }])
  assert.equal(r.of('m3').generationId, 'g3')
})

test('a rewind that was missed: all of the text is asked for', async () => {
  const { r, say, asked, text } = replies()
  say(delta(0, 'These were thoughts'))
  r.active([running], true)
  asked[0].answer(5, '') // the text is shorter than ours
  await settle()
  assert.equal(asked[1].off, 0)
  asked[1].answer(0, 'Reply')
  await settle()
  assert.equal(text(), 'Reply')
})

test('ended while attaching: the stored text counts', async () => {
  const { r, say, asked, ended } = replies()
  say(delta(0, 'One '), delta(8, 'three'), updated('One two three.'), done)
  assert.deepEqual(ended, [{ text: 'One two three.', how: 'gen.done' }])
  asked[0].answer(4, 'two three.', 'done')
  await settle()
  assert.equal(ended.length, 1)
  assert.equal(r.get('g'), undefined)
})

test('ended while attaching, without a stored text: the answer is waited for', async () => {
  for (const refuse of [false, true]) {
    const { say, asked, ended } = replies()
    say(delta(0, 'One '), delta(8, 'three'), done)
    assert.deepEqual(ended, [])
    if (refuse) asked[0].refuse()
    else asked[0].answer(4, 'two three.', 'done')
    await settle()
    assert.deepEqual(ended, [{ text: refuse ? 'One ' : 'One two three.', how: 'gen.done' }])
  }
})

test('a message that is updated while its reply is written does not touch the text', () => {
  const { say, text, ended } = replies()
  say(delta(0, 'New'), updated('An older text', { generationId: 'g0' }), updated('', { status: 'streaming' }), delta(3, ' text'))
  assert.equal(text(), 'New text')
  say(updated('Of the shown swipe', { swipes: [{ generationId: 'g0', text: 'x' }, { generationId: 'g', text: 'New text.' }] }), done)
  assert.deepEqual(ended, [{ text: 'New text.', how: 'gen.done' }])
})

test('a failed or interrupted reply keeps what was shown', () => {
  const { say, ended } = replies()
  say(delta(0, 'Shown'), updated('Sh', { status: 'error' }), failed, delta(0, 'Shown'), updated('Sh', { status: 'interrupted' }), { ...done, data: { status: 'interrupted' } })
  assert.deepEqual(ended, [{ text: 'Shown', how: 'gen.failed' }, { text: 'Shown', how: 'gen.done' }])
})

test('the end of an unknown generation, and unknown events, are ignored', () => {
  const { r, say, ended } = replies()
  say(done, failed, updated('x'), { ev: 'of.the.future', seq: 1 })
  assert.deepEqual(ended, [])
  assert.equal(r.of('m'), undefined)
})

test('follow takes up what runs, and tells what has ended', async () => {
  const { r, asked, text } = replies()
  const runs = r.follow('g')
  asked[0].answer(0, 'So far')
  assert.equal(await runs, undefined)
  assert.equal(text(), 'So far')

  const other = replies()
  const over = other.r.follow('g')
  other.asked[0].answer(0, 'All of it', 'failed', { code: 'empty_reply' })
  assert.equal((await over).reply.text, 'All of it')
  assert.equal((await over).error.code, 'empty_reply')
  assert.equal(other.r.get('g'), undefined)
})
