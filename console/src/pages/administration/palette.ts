import { Cog6ToothIcon, UserIcon } from '@heroicons/react/24/outline';
import { matches } from '../../palette/matches.ts';
import type { PaletteSource } from '../../palette/sources.ts';
import { queryClient } from '../../queries.ts';
import { text } from '../../texts/text.ts';
import { accountsQuery } from './queries.ts';
import { TABS } from './tabs.ts';

const FOUND_MAX = 5;
const { title, tabs, account } = text.administration;

export const administrationPalette: PaletteSource = {
  isForAdmins: true,
  actions: TABS.filter((tab) => tab !== 'status').map((tab) => ({
    id: `administration-${tab}`,
    label: `${title}: ${tabs[tab]}`,
    icon: Cog6ToothIcon,
    open: { to: '/administration', search: { tab } },
  })),
  find: async (words) => {
    const accounts = await queryClient.fetchQuery(accountsQuery);
    return accounts
      .filter(({ username, email }) => matches(`${username} ${email}`, words))
      .slice(0, FOUND_MAX)
      .map(({ id, username, email }) => ({
        id: `account-${id}`,
        label: username,
        note: `${account} · ${email}`,
        icon: UserIcon,
        open: { to: '/administration', search: { tab: 'accounts', find: username } },
      }));
  },
};
