/** One object, opened from its folder: beside the list if there is room, else over it. */
import { CloseButton, Drawer, Group } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useId, useRef } from 'react';
import { FocusReturn } from '../../../parts/forms/dialog.tsx';
import { lazyPart } from '../../../parts/lazy-part.tsx';
import { Loaded } from '../../../parts/page.tsx';
import { sayName } from '../../../parts/say.ts';
import { text } from '../../../texts/text.ts';
import { objectQuery } from '../queries.ts';
import classes from '../storage.module.css';

const ObjectDetails = lazyPart(() => import('./object-details.tsx').then((made) => made.ObjectDetails));

interface ObjectPanelProps {
  readonly bucket: string;
  readonly id: string;
  readonly isVersioned: boolean;
  readonly isBeside: boolean;
}

export function ObjectPanel({ bucket, id, isVersioned, isBeside }: ObjectPanelProps) {
  const object = useQuery(objectQuery(bucket, id));
  const navigate = useNavigate({ from: '/storage/$bucket' });
  const close = () =>
    void navigate({ search: ({ object: _, ...search }) => search, resetScroll: false, replace: true });
  const name = object.data?.name ?? '';
  const title = sayName(name.slice(name.lastIndexOf('/') + 1) || name);
  const content = (
    <Loaded query={object}>
      {(data) => <ObjectDetails key={id} object={data} isVersioned={isVersioned} onGone={close} />}
    </Loaded>
  );
  if (isBeside) {
    return (
      <Beside title={title} onClose={close}>
        {content}
      </Beside>
    );
  }
  return (
    <Drawer
      opened
      onClose={close}
      position="right"
      size="lg"
      title={<span className={classes.drawerTitle}>{title}</span>}
    >
      <FocusReturn />
      {content}
    </Drawer>
  );
}

interface BesideProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: React.ReactNode;
}

/** A dialog that leaves the list usable: the focus stays there, and Escape closes it from both. */
function Beside({ title, onClose, children }: BesideProps) {
  const id = useId();
  const latest = useRef(onClose);
  latest.current = onClose;
  useEffect(() => {
    let isCovered = false;
    // Runs before a dialog handles the key and closes.
    const look = () => {
      isCovered = document.querySelector('[role=dialog][aria-modal=true], [role=menu]') !== null;
    };
    const listen = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !event.defaultPrevented && !isCovered) latest.current();
    };
    window.addEventListener('keydown', look, { capture: true });
    window.addEventListener('keydown', listen);
    return () => {
      window.removeEventListener('keydown', look, { capture: true });
      window.removeEventListener('keydown', listen);
    };
  }, []);
  return (
    <section role="dialog" aria-labelledby={id} className={classes.panel} data-beside>
      <Group justify="space-between" align="flex-start" wrap="nowrap" mb="sm">
        <h2 id={id} className={classes.drawerTitle}>
          {title}
        </h2>
        <CloseButton aria-label={text.storage.closePanel} onClick={onClose} />
      </Group>
      {children}
    </section>
  );
}
