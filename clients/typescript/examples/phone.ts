// A phone app in 40 lines: it stores its position, comes back after every cut, and
// shows replies as they are written. The store and the screen are yours.
import { Client, Failure, newKey, type Message, type Position } from '@nodest/client'

declare const store: { get<T>(name: string): Promise<T | null>; set(name: string, value: unknown): Promise<void> }
declare const screen: { chats(list: unknown[]): void; message(m: Message): void; typing(id: string | undefined, text: string): void; problem(text: string): void; offline(on: boolean): void; signIn(): void }

export async function start(base: string, token: string) {
  const deviceId = (await store.get<string>('device')) ?? newKey()
  await store.set('device', deviceId)

  const client: Client = new Client({
    base,
    token,
    deviceId,
    client: 'phone/1.0',
    deltaMs: 80, // fewer, larger frames: the radio sleeps in between
    position: await store.get<Position>('position'),
    snapshot: (s) => screen.chats(s.conversations), // first start, or away for too long
    event: (e) => {
      if (e.ev === 'message.created' || e.ev === 'message.updated') screen.message(e.data.message)
      void store.set('position', client.connection.position)
    },
    reply: (r) => screen.typing(r.messageId, r.text),
    state: (s) => screen.offline(s !== 'open'),
    signedOut: () => screen.signIn(),
  })
  client.connection.open()

  return {
    /** Call it when the app comes to the foreground or the network changes. */
    wake: () => client.connection.wake(),
    /** It survives cuts: the message is stored once, and its reply comes as events. */
    async send(conversationId: string, text: string) {
      const sent = client.connection.send('chat.send', { conversationId, text, clientMsgId: newKey() })
      await sent.catch((e) => screen.problem(e instanceof Failure ? e.message : String(e)))
    },
  }
}
