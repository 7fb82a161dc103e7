/** The frame: navigation at the side (a drawer on a phone), search, account, and the page. */

import {
  ArrowRightStartOnRectangleIcon,
  MagnifyingGlassIcon,
  UserCircleIcon,
} from '@heroicons/react/24/outline';
import {
  ActionIcon,
  AppShell,
  Avatar,
  Burger,
  Group,
  Kbd,
  type MantineColorScheme,
  Menu,
  Stack,
  Text,
  UnstyledButton,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, Outlet, useLocation } from '@tanstack/react-router';
import { useEffect, useSyncExternalStore } from 'react';
import type { Account } from '../../../sdk/index.ts';
import { SessionReplaced, SignInForm, UploadsWait } from '../pages/sign-in/sign-in-form.tsx';
import { openPalette, Palette } from '../palette/palette.tsx';
import { Dialog } from '../parts/forms/dialog.tsx';
import { Warning } from '../parts/forms/warning.tsx';
import { lazyPart } from '../parts/lazy-part.tsx';
import { accountQuery, live, readsAll, session } from '../queries.ts';
import { text } from '../texts/text.ts';
import { DropZone } from '../uploads/add-files.tsx';
import { uploadQueue } from '../uploads/upload-queue.ts';
import { AREAS } from './areas.ts';
import { AskPassword } from './ask-password.tsx';
import { ClosedPage } from './failures.tsx';
import { followCloud } from './live.ts';
import { Logo } from './logo.tsx';
import { beginAnewAs, useOneAccount, useSignOut } from './one-account.ts';
import classes from './shell.module.css';
import { openKeySheet, Shortcuts } from './shortcuts.tsx';

const UploadTray = lazyPart(() => import('../uploads/upload-tray.tsx').then((made) => made.UploadTray));

export function Shell() {
  const [isOpen, { toggle, close }] = useDisclosure();
  const sessionState = useSyncExternalStore(session.subscribe, session.get);
  useEffect(() => (sessionState === 'alive' ? followCloud() : undefined), [sessionState]);
  const { data: account } = useQuery(accountQuery);
  useOneAccount(account?.id);
  const isForAll = readsAll(account);
  const areas = AREAS.filter(({ forAdmins }) => !forAdmins || isForAll);
  const path = useLocation({ select: ({ pathname }) => pathname });
  const isClosed = AREAS.some(({ to, forAdmins }) => forAdmins && !isForAll && path.startsWith(to));
  return (
    <>
      <a className="skip-link" href="#content">
        {text.shell.skip}
      </a>
      <AppShell
        layout="alt"
        header={{ height: 56 }}
        navbar={{ width: 232, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
        padding={{ base: 'md', md: 'xl' }}
      >
        <AppShell.Header className={classes.header ?? ''}>
          <Burger
            opened={isOpen}
            onClick={toggle}
            hiddenFrom="sm"
            size="sm"
            aria-label={isOpen ? text.shell.closeNavigation : text.shell.openNavigation}
          />
          <SearchButton />
          {account !== undefined && <UserMenu account={account} />}
        </AppShell.Header>
        <AppShell.Navbar className={classes.side ?? ''} component="nav" aria-label={text.shell.navigation}>
          <Group justify="space-between" className={classes.brand ?? ''}>
            <Logo />
            <Burger
              opened
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={text.shell.closeNavigation}
            />
          </Group>
          {areas.map(({ to, label, icon: Icon }) => (
            <Link
              key={to}
              to={to}
              className={classes.area ?? ''}
              activeOptions={{ exact: to === '/' }}
              onClick={close}
            >
              <Icon className={classes.areaIcon} aria-hidden />
              {label}
            </Link>
          ))}
          <Link to="/reference" className={`${classes.area} ${classes.docs}`} onClick={close}>
            {text.shell.apiDocs}
          </Link>
        </AppShell.Navbar>
        <AppShell.Main id="content" tabIndex={-1} className={classes.main ?? ''}>
          <div className={classes.page}>
            <ConnectionNotice />
            {isClosed ? <ClosedPage /> : <Outlet />}
          </div>
        </AppShell.Main>
      </AppShell>
      {account !== undefined && <SignInAgain account={account} />}
      <AskPassword />
      <Palette areas={areas} isAdmin={isForAll} onKeys={openKeySheet} />
      <Shortcuts />
      <DropZone />
      <UploadTray />
    </>
  );
}

const IS_MAC = /Mac|iPhone|iPad/.test(navigator.userAgent);

function SearchButton() {
  return (
    <>
      <UnstyledButton className={classes.search ?? ''} onClick={openPalette} visibleFrom="sm">
        <MagnifyingGlassIcon width={16} aria-hidden />
        <Text size="sm" c="dimmed" flex={1}>
          {text.shell.search}
        </Text>
        <Kbd size="xs">{IS_MAC ? '⌘' : 'Ctrl'} K</Kbd>
      </UnstyledButton>
      <ActionIcon
        hiddenFrom="sm"
        ml="auto"
        variant="subtle"
        color="gray"
        onClick={openPalette}
        aria-label={text.shell.search}
      >
        <MagnifyingGlassIcon width={20} />
      </ActionIcon>
    </>
  );
}

/** A line on every page while the cloud does not respond. */
function ConnectionNotice() {
  const state = useSyncExternalStore(live.subscribe, live.get);
  return (
    <div role="status" className="connection-notice">
      {state === 'gone' && <Warning title={text.shell.gone}>{text.shell.goneLead}</Warning>}
    </div>
  );
}

/** Shown over the page when the session ends: typed input is kept. */
function SignInAgain({ account }: { account: Account }) {
  const state = useSyncExternalStore(session.subscribe, session.get);
  const queryClient = useQueryClient();
  const enter = async (entered: Account) => {
    if (entered.id !== account.id) return beginAnewAs(entered.id);
    queryClient.setQueryData(accountQuery.queryKey, entered);
    session.set('alive');
    uploadQueue.signedIn(entered.id);
    await queryClient.invalidateQueries();
  };
  return (
    <Dialog
      opened={state !== 'alive'}
      onClose={() => {}}
      title={text.signIn.ended}
      withCloseButton={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
      zIndex={1000}
      size="sm"
    >
      <Stack>
        {state === 'replaced' && <SessionReplaced />}
        <Text size="sm">{text.signIn.endedLead}</Text>
        <UploadsWait />
        <SignInForm given={{ username: account.username }} onEnter={enter} />
      </Stack>
    </Dialog>
  );
}

/** The signed-in account, the colour scheme, and sign out. */
const { scheme } = text.shell;
const SCHEMES = ['light', 'dark', 'auto'] as const;

function UserMenu({ account }: { account: Account }) {
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
