import { KeyIcon } from '@heroicons/react/24/outline';
import type { PaletteSource } from '../../palette/sources.ts';
import { text } from '../../texts/text.ts';

export const accountPalette: PaletteSource = {
  actions: [
    {
      id: 'create-key',
      label: text.account.createKey,
      icon: KeyIcon,
      open: { to: '/account', search: { create: 'key' } },
    },
  ],
};
