/** The tabs of a bucket beside its objects, fetched together: each has only a few lines of its own. */
import type { ComponentType } from 'react';
import type { BucketTab } from '../queries.ts';
import { CorsTab } from './cors-tab.tsx';
import { LifecycleTab } from './lifecycle-tab.tsx';
import { LockTab } from './lock-tab.tsx';
import { PermissionsTab } from './permissions-tab.tsx';
import { RecoveryTab } from './recovery-tab.tsx';
import { TagsTab } from './tags-tab.tsx';
import { UploadsTab } from './uploads-tab.tsx';

interface TabProps {
  readonly bucket: string;
}

const TABS: Readonly<Record<BucketTab, ComponentType<TabProps>>> = {
  uploads: UploadsTab,
  permissions: PermissionsTab,
  lifecycle: LifecycleTab,
  lock: LockTab,
  cors: CorsTab,
  tags: TagsTab,
  recovery: RecoveryTab,
};

export function SettingTab({ tab, bucket }: TabProps & { tab: BucketTab }) {
  const Tab = TABS[tab];
  return <Tab bucket={bucket} />;
}
