/** The tabs of a bucket beside its objects, fetched together: each has only a few lines of its own. */
import type { ComponentType } from 'react';
import { CorsTab } from './cors-tab.tsx';
import type { BucketTab } from './queries.ts';
import { TagsTab } from './tags-tab.tsx';
import { UploadsTab } from './uploads-tab.tsx';

interface TabProps {
  readonly bucket: string;
}

const TABS: Readonly<Record<BucketTab, ComponentType<TabProps>>> = {
  uploads: UploadsTab,
  tags: TagsTab,
  cors: CorsTab,
};

export function SettingTab({ tab, bucket }: TabProps & { tab: BucketTab }) {
  const Tab = TABS[tab];
  return <Tab bucket={bucket} />;
}
