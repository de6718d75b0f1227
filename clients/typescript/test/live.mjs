// The client and a real server: node test/live.mjs BASE TOKEN. TestTypeScriptClient runs it.
import assert from 'node:assert/strict'
import WebSocket from 'ws'
import { Client, newKey } from '../dist/index.js'

const [base, token] = process.argv.slice(2)
const sockets = []
class Recorded extends WebSocket {
  constructor(...args) {
    super(...args)
    sockets.push(this)
  }
}

const seqs = []
const resumed = []
let inReply = 0 // connections that came back while a reply was being written
let grown = () => {} // is called with each text of a reply
let watch = () => {} // is called with each event and state
const until = (wanted) => new Promise((done) => { watch = (x) => wanted(x) && done() })
const client = new Client({
  base, token, deviceId: newKey(), client: 'live', WebSocket: Recorded,
  snapshot: (s) => assert.ok(s.epoch),
  active: (list, r) => {
    resumed.push(r)
    if (list.length > 0) inReply++
  },
  reply: (r) => grown(r.text),
  event: (e) => {
    if (e.seq !== undefined) seqs.push(e.seq)
    watch(e)
  },
  state: (s) => {
    watch(s)
    if (s === 'waiting') connection.wake() // at once, while the reply goes on
  },
})
const { rest, connection } = client
const cut = () => sockets.at(-1).terminate()
const messages = async () => (await rest.get('/conversations/{id}/messages', { path: { id: conversationId } })).items

const open = until((x) => x === 'open')
connection.open()
await open
const character = await rest.post('/characters', { body: { roleCard: { name: 'Mira', first_mes: 'Hello.', description: 'A lighthouse keeper.' } } })
const { id: conversationId } = await rest.post('/conversations', { body: { characterId: character.id } })

/** talk sends a message and streams its reply to its end. */
async function talk(text) {
  let last = ''
  for await (const r of client.send(conversationId, text)) last = r.text
  const [said, reply] = (await messages()).slice(-2)
  assert.equal(said.text, text)
  assert.equal(reply.status, 'complete')
  assert.ok(reply.text)
  assert.equal(last, reply.text)
}

await talk('What do you see from up there? 🌊')

// Cut in the middle of a reply.
for (const at of [1, 15, 40]) {
  let done = false
  grown = (text) => {
    if (done || text.length < at) return
    done = true
    cut()
  }
  await talk(`Tell me more, after ${at}.`)
}
grown = () => {}

// Cut when the message has just been sent: whether it arrived or not, it is stored once.
const sent = talk('Did you get this?')
await Promise.resolve()
cut()
await sent
assert.equal((await messages()).filter((m) => m.text === 'Did you get this?').length, 1)

// Away: the events are read over REST, and once more by the connection.
connection.close()
const from = connection.position
await rest.post('/conversations/{id}/messages', { path: { id: conversationId }, body: { text: 'Said elsewhere.' } })
const missed = []
for await (const e of client.missed(from)) missed.push(e)
assert.deepEqual(missed.map((e) => e.seq), missed.map((_, i) => from.seq + 1 + i))
assert.ok(missed.some((e) => e.ev === 'message.created' && e.data.message.text === 'Said elsewhere.'))
assert.ok(missed.some((e) => e.ev === 'gen.done'))
const same = until((e) => e.seq === missed.at(-1).seq)
connection.open()
await same
connection.close()

assert.deepEqual(seqs, seqs.map((_, i) => seqs[0] + i), 'an event was told twice or not at all')
assert.deepEqual(resumed.slice(0, 2), [false, true])
assert.ok(resumed.slice(1).every(Boolean))
console.log(`${seqs.length} events over ${sockets.length} connections, ${inReply} of them begun within a reply`)
