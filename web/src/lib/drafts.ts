// Texts that were written and not sent yet, by chat. They are kept over a reload.

import { storage } from './storage'

const prefix = 'nodest.draft.'

export const drafts = {
  get: (chatId: string) => storage.get(prefix + chatId) ?? '',
  set(chatId: string, text: string) {
    if (text) storage.set(prefix + chatId, text)
    else storage.remove(prefix + chatId)
  },
}
