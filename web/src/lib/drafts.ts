// What was written and not sent yet, by chat. It is kept over a reload.

const prefix = 'nodest.draft.'

export const drafts = {
  get: (chatId: string) => localStorage.getItem(prefix + chatId) ?? '',
  set(chatId: string, text: string) {
    if (text) localStorage.setItem(prefix + chatId, text)
    else localStorage.removeItem(prefix + chatId)
  },
}
