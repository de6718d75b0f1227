import { words } from '../../lib/language.svelte'

export const headWords = words(
  {
    model: 'Model of this chat',
    modelNow: (name: string) => `Model of this chat: ${name}`,
    automatic: 'Automatic',
    fromSettings: 'As in the settings',
    changed: (name: string) => `This chat now uses ${name}.`,
    usedProfile: 'Used your profile',
  },
  {
    model: '此聊天的模型',
    modelNow: (name: string) => `此聊天的模型：${name}`,
    automatic: '自动',
    fromSettings: '跟随设置',
    changed: (name: string) => `此聊天改用 ${name}。`,
    usedProfile: '用到了你的个人资料',
  },
)
