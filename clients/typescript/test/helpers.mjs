// A server in the test: the sockets that a Connection makes, and timers that are moved by hand.
import { Connection, Rest } from '../dist/index.js'

/** settle lets everything happen that waits for no timer. */
export const settle = async () => {
  for (let i = 0; i < 5; i++) await new Promise((done) => setImmediate(done))
}

export const at = (seq, epoch = 'e') => ({ epoch, seq })

/** fakeTimers replaces the clock for a test. All waits between attempts are the longest ones. */
export function fakeTimers(t) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_700_000_000_000 })
  t.mock.method(Math, 'random', () => 1)
  return async (ms) => {
    t.mock.timers.tick(ms)
    await settle()
  }
}

/** server returns a class for sockets, and the sockets made with it. */
export function server() {
  const sockets = []
  class FakeSocket {
    sent = []
    closed = null
    constructor(url, protocol) {
      Object.assign(this, { url, protocol })
      sockets.push(this)
    }
    send(text) {
      if (this.closed === null) this.sent.push(JSON.parse(text))
    }
    close(code) {
      this.closed = code ?? 1005
    }

    // The side of the server.
    open() {
      this.onopen({})
      return this.sent[0].data
    }
    say(...frames) {
      for (const f of frames) this.onmessage({ data: JSON.stringify(f) })
    }
    welcome(more = {}) {
      const hello = this.open()
      this.say({ id: 'hello', ok: true, data: { epoch: 'e', seq: hello.resume?.seq ?? 0, resumed: Boolean(hello.resume), active: [], ...more } })
      return hello
    }
    cut(code = 1006, reason = '') {
      this.closed ??= code
      this.onclose({ code, reason })
    }
    get commands() {
      return this.sent.filter((f) => f.cmd !== 'hello')
    }
  }
  return { FakeSocket, sockets, last: () => sockets.at(-1) }
}

/** connected returns a Connection to a fake server, and what it told. */
export function connection(t, options = {}) {
  const pass = fakeTimers(t)
  const fake = server()
  const told = { events: [], states: [], active: [], signedOut: 0 }
  const c = new Connection({
    rest: new Rest({ base: 'http://server', token: 'secret' }),
    deviceId: 'd',
    WebSocket: fake.FakeSocket,
    position: at(10),
    event: (e) => told.events.push(e.seq ?? e.ev),
    reload: async () => at(100),
    state: (s) => told.states.push(s),
    active: (list, resumed) => told.active.push({ ids: list.map((a) => a.generationId), resumed }),
    signedOut: () => told.signedOut++,
    ...options,
  })
  t.after(() => c.close())
  return { c, told, pass, ...fake }
}

export const event = (seq, ev = 'message.deleted', more = {}) => ({ ev, seq, at: 0, data: {}, ...more })
export const problem = (code, more = {}) => ({ code, status: 400, title: '', detail: 'It did not work.', retry: 'no', requestId: 'r', type: '', ...more })

/** outcome of a promise, once it is known. */
export async function outcome(promise) {
  let result = 'waits'
  promise.then((value) => (result = { value }), (error) => (result = { error }))
  await settle()
  return result
}

/** deferred is a promise that the test decides. */
export function deferred() {
  const d = {}
  d.promise = new Promise((done, failed) => Object.assign(d, { done, failed }))
  return d
}
