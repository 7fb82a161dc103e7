/** Who is signed in, the colours, and the way out. */

import { ArrowRightStartOnRectangleIcon, UserCircleIcon } from '@heroicons/react/24/outline';
import {
  Avatar,
  type MantineColorScheme,
  Menu,
  Text,
  UnstyledButton,
  useMantineColorScheme,
} from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Account } from '../../../sdk/index.ts';
import { text } from '../texts/text.ts';
import { useSignOut } from './use-sign-out.ts';

const { scheme } = text.shell;
const SCHEMES = ['light', 'dark', 'auto'] as const;

export function UserMenu({ account }: { account: Account }) {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const signOut = useSignOut();
  return (
    <Menu position="bottom-end" width={268} withinPortal>
      <Menu.Target>
        <UnstyledButton aria-label={text.shell.signedInAs(account.username)}>
          <Avatar size={32} radius="xl" color="petrol" alt="" />
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <Text size="sm" fw={600} c="var(--mantine-color-text)" truncate>
            {account.username}
          </Text>
          <Text size="xs" truncate>
            {account.email}
          </Text>
        </Menu.Label>
        <Menu.Item component={Link} to="/account" leftSection={<UserCircleIcon width={18} />}>
          {text.shell.areas.account}
        </Menu.Item>
        <Menu.Divider />
        <Menu.Label>{scheme.label}</Menu.Label>
        <Menu.RadioGroup
          value={colorScheme}
          onChange={(chosen) => setColorScheme(chosen as MantineColorScheme)}
        >
          {SCHEMES.map((name) => (
            <Menu.RadioItem key={name} value={name}>
              {scheme[name]}
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
        <Menu.Divider />
        <Menu.Item
          leftSection={<ArrowRightStartOnRectangleIcon width={18} />}
          onClick={() => signOut.mutate()}
        >
          {text.shell.signOut}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
