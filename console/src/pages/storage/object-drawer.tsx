/** One object, opened beside its folder. */
import { Drawer } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { FocusReturn } from '../../parts/dialog.tsx';
import { lazyPart } from '../../parts/lazy-part.tsx';
import { sayName } from '../../parts/name.ts';
import { Loaded } from '../../parts/page.tsx';
import classes from './object-drawer.module.css';
import { objectQuery } from './queries.ts';

const ObjectDetails = lazyPart(() => import('./object-details.tsx').then((made) => made.ObjectDetails));

interface ObjectDrawerProps {
  readonly bucket: string;
  readonly id: string;
  readonly isVersioned: boolean;
}

export function ObjectDrawer({ bucket, id, isVersioned }: ObjectDrawerProps) {
  const object = useQuery(objectQuery(bucket, id));
  const navigate = useNavigate({ from: '/storage/$bucket' });
  const close = () =>
    void navigate({ search: ({ object: _, ...search }) => search, resetScroll: false, replace: true });
  const name = object.data?.name ?? '';
  return (
    <Drawer
      opened
      onClose={close}
      position="right"
      size="lg"
      title={<span className={classes.title}>{sayName(name.slice(name.lastIndexOf('/') + 1) || name)}</span>}
    >
      <FocusReturn />
      <Loaded query={object}>
        {(data) => <ObjectDetails object={data} isVersioned={isVersioned} onGone={close} />}
      </Loaded>
    </Drawer>
  );
}
