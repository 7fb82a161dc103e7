/** A bucket's page: its objects and its settings. */
import { Group, Tabs } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useEffect, useRef } from 'react';
import { lazyPart } from '../../../parts/lazy-part.tsx';
import classes from '../../../parts/parts.module.css';
import { s3Text } from '../../../texts/s3-text.ts';
import { BUCKET_TABS, type BucketTab } from '../queries.ts';

const WAITING = <Group h={320} aria-busy="true" />;
const ChosenTab = lazyPart(() => import('./bucket-tab.tsx').then((made) => made.BucketTab), WAITING);
const OBJECTS = 'objects';

interface BucketTabsProps {
  readonly bucket: string;
  readonly tab: BucketTab | undefined;
  /** The objects. */
  readonly children: ReactNode;
}

export function BucketTabs({ bucket, tab, children }: BucketTabsProps) {
  const navigate = useNavigate({ from: '/storage/$bucket' });
  const value = tab ?? OBJECTS;
  const open = (next: string | null) => {
    const chosen = BUCKET_TABS.find((each) => each === next);
    void navigate({ search: chosen === undefined ? {} : { tab: chosen }, replace: true });
  };
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // On a phone, the last tabs may be out of view.
    const active = list.current?.querySelector(`[data-tab=${value}]`);
    active?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [value]);
  return (
    <Tabs value={value} onChange={open} keepMounted={false}>
      <Tabs.List ref={list} className={classes.tabList ?? ''}>
        {[OBJECTS, ...BUCKET_TABS].map((each) => (
          <Tabs.Tab key={each} value={each} data-tab={each}>
            {s3Text.tabs[each as BucketTab | typeof OBJECTS]}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      <Tabs.Panel value={OBJECTS}>{children}</Tabs.Panel>
      {BUCKET_TABS.map((each) => (
        <Tabs.Panel key={each} value={each}>
          <ChosenTab tab={each} bucket={bucket} />
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}
