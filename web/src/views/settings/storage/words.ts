import { words } from '../../../lib/language.svelte'

export const storageWords = words(
  {
    storage: 'Storage',
    text: 'What you have on this server, and how much you may have.',
    of: (used: string, limit: string) => `${used} of ${limit}`,
    near: 'Almost full',
    full: 'Full',
    nearlyUsed: 'Almost used up',
    usedUp: 'Used up',
    space: 'Texts, cards, world books, memories and pictures take up space. Documents of knowledge bases have a limit of their own.',
    late: 'After you delete something, these numbers may stay too high for up to a day, or for up to 30 days if it was a chat. When you reach a limit, they are corrected within a minute.',
  },
  {
    storage: '存储',
    text: '你在此服务器上存储的内容及上限。',
    of: (used: string, limit: string) => `${used} / ${limit}`,
    near: '将满',
    full: '已满',
    nearlyUsed: '即将用完',
    usedUp: '已用完',
    space: '文本、角色卡、世界书、记忆和图片占用空间。知识库文档另有上限。',
    late: '删除内容后，这些数字可能在一天内仍然偏高；删除聊天后，最长可达 30 天。达到上限时，会在一分钟内更正。',
  },
)
