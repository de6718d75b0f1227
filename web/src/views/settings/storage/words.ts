import { words } from '../../../lib/language.svelte'

export const storageWords = words(
  {
    storage: 'Storage',
    text: 'What you have on this server, and how much you may have.',
    of: (used: string, limit: string) => `${used} of ${limit}`,
    near: 'Almost full',
    full: 'Full',
    usedUp: 'Used up',
    space: 'Texts, cards, world books, memories and pictures take up space. Documents of knowledge bases have a limit of their own.',
    late: 'After something is deleted, these numbers may be too high for up to a day. Messages of deleted chats count until they are removed for good, after 30 days.',
  },
  {
    storage: '存储',
    text: '你在此服务器上存储的内容及上限。',
    of: (used: string, limit: string) => `${used} / ${limit}`,
    near: '将满',
    full: '已满',
    usedUp: '已用完',
    space: '文本、角色卡、世界书、记忆和图片占用空间。知识库文档另有上限。',
    late: '删除内容后，这些数字最多一天内可能偏高。已删除聊天中的消息在 30 天后彻底清除，此前仍计入。',
  },
)
