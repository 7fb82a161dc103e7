import { CreditCardIcon } from '@heroicons/react/24/outline';
import type { PaletteSource } from '../../palette/sources.ts';
import { text } from '../../texts/text.ts';
import { TABS } from './tabs.ts';

const { title, tabs } = text.billing;

export const billingPalette: PaletteSource = {
  actions: TABS.filter((tab) => tab !== 'now').map((tab) => ({
    id: `billing-${tab}`,
    label: `${title}: ${tabs[tab]}`,
    icon: CreditCardIcon,
    open: { to: '/billing', search: { tab } },
  })),
};
