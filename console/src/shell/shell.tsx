/** The frame: navigation at the side (a drawer on a phone), search, account, and the page. */

import { MagnifyingGlassIcon } from '@heroicons/react/24/outline';
import { ActionIcon, AppShell, Burger, Group, Kbd, Text, UnstyledButton } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useLocation } from '@tanstack/react-router';
import { useEffect, useSyncExternalStore } from 'react';
import { openPalette, Palette } from '../palette/palette.tsx';
import { accountQuery, session } from '../queries.ts';
import { text } from '../texts/text.ts';
import { DropZone } from '../uploads/drop-zone.tsx';
import { UploadTray } from '../uploads/upload-tray.tsx';
import { AREAS } from './areas.ts';
import { ConnectionNotice } from './connection-notice.tsx';
import { NotFound } from './failures.tsx';
import { followCloud } from './live.ts';
import { Logo } from './logo.tsx';
import { useOneAccount } from './one-account.ts';
import classes from './shell.module.css';
import { SignInAgain } from './sign-in-again.tsx';
import { UserMenu } from './user-menu.tsx';

export function Shell() {
  const [isOpen, { toggle, close }] = useDisclosure();
  const sessionState = useSyncExternalStore(session.subscribe, session.get);
  useEffect(() => (sessionState === 'alive' ? followCloud() : undefined), [sessionState]);
  const { data: account } = useQuery(accountQuery);
  useOneAccount(account?.id);
  const isAdmin = account?.is_admin === true;
  const areas = AREAS.filter(({ forAdmins }) => !forAdmins || isAdmin);
  const path = useLocation({ select: ({ pathname }) => pathname });
  const isClosed = AREAS.some(({ to, forAdmins }) => forAdmins && !isAdmin && path.startsWith(to));
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
          <a className={`${classes.area} ${classes.docs}`} href="/api/docs">
            {text.shell.apiDocs}
          </a>
        </AppShell.Navbar>
        <AppShell.Main id="content" tabIndex={-1} className={classes.main ?? ''}>
          <div className={classes.page}>
            <ConnectionNotice />
            {isClosed ? <NotFound /> : <Outlet />}
          </div>
        </AppShell.Main>
      </AppShell>
      {account !== undefined && <SignInAgain account={account} />}
      <Palette areas={areas} isAdmin={isAdmin} />
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
