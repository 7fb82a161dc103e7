/** The settings of a bucket: a list of sections with what each is set to, and the section of the address. */
import { Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useLocation } from '@tanstack/react-router';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { Bucket, BucketSettings } from '../../../../../sdk/index.ts';
import { Loaded } from '../../../parts/page.tsx';
import { AnchorLink } from '../../../parts/tables/links.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { bucketQuery, settingsQuery } from '../queries.ts';
import classes from '../storage.module.css';
import { WhoMay } from './access-forms.tsx';
import { BasicsForm, basicsSummary } from './basics-form.tsx';
import { SettingForms, summariesOf } from './setting-forms.tsx';
import { SECTIONS, type SettingsSection } from './setting-sections.ts';

const words = s3Text.settings;

export function SettingsTab({ bucket: name }: { bucket: string }) {
  const settings = useQuery(settingsQuery(name));
  const bucket = useQuery(bucketQuery(name));
  const both = settings.data && bucket.data && { settings: settings.data, bucket: bucket.data };
  return (
    <Loaded
      query={{
        data: both,
        error: settings.error ?? bucket.error,
        refetch: () => Promise.all([settings.refetch(), bucket.refetch()]),
      }}
    >
      {(read) => <Sections {...read} />}
    </Loaded>
  );
}

interface SectionsProps {
  readonly bucket: Bucket;
  readonly settings: BucketSettings;
}

function Sections({ bucket, settings }: SectionsProps) {
  const asked = useLocation({ select: ({ hash }) => hash });
  const named = SECTIONS.find((each) => each === asked);
  const open = named ?? SECTIONS[0];
  // A hidden section keeps its unsaved changes.
  const [visited, setVisited] = useState<ReadonlySet<SettingsSection>>(new Set());
  useEffect(() => setVisited((before) => new Set([...before, open])), [open]);
  const list = useRef<HTMLElement>(null);
  const last = useRef<string>(undefined);
  useEffect(() => {
    // On a phone, the way back to the list is gone with the section: its link has the focus then.
    if (named === undefined && last.current !== undefined && !isFocusShown()) {
      list.current?.querySelector<HTMLElement>(`[data-section=${last.current}]`)?.focus();
    }
    last.current = named;
  }, [named]);
  return (
    <div className={classes.settings} data-open={named !== undefined}>
      <nav ref={list} aria-label={words.sections} className={classes.sections}>
        {SECTIONS.map((section) => (
          <AnchorLink
            key={section}
            data-section={section}
            to="/storage/$bucket"
            params={{ bucket: bucket.name }}
            search={{ tab: 'settings' }}
            hash={section}
            replace
            hashScrollIntoView={false}
            className={classes.section ?? ''}
            underline="never"
            activeOptions={{ includeHash: true }}
            aria-current={section === open ? 'true' : undefined}
          >
            <span className={classes.sectionTitle}>{words.titles[section]}</span>
            <span className={classes.sectionSummary}>{summaryOf(section, bucket, settings)}</span>
          </AnchorLink>
        ))}
      </nav>
      {SECTIONS.filter((section) => section === open || visited.has(section)).map((section) => (
        <Section
          key={section}
          section={section}
          bucket={bucket.name}
          isOpen={section === open}
          isNamed={!!named}
        >
          {section === 'basics' && <BasicsForm bucket={bucket} />}
          {section === 'access' && <WhoMay bucket={bucket.name} />}
          <SettingForms section={section} bucket={bucket.name} settings={settings} />
        </Section>
      ))}
    </div>
  );
}

function summaryOf(section: SettingsSection, bucket: Bucket, settings: BucketSettings): string {
  if (section === 'basics') return basicsSummary(bucket);
  const set = summariesOf(section, settings);
  return set.length === 0 ? words.unset[section] : set.join(' · ');
}

interface SectionProps {
  readonly section: SettingsSection;
  readonly bucket: string;
  readonly isOpen: boolean;
  /** The address names a section, so a narrow page shows it instead of the list. */
  readonly isNamed: boolean;
  readonly children: ReactNode;
}

function Section({ section, bucket, isOpen, isNamed, children }: SectionProps) {
  const title = useRef<HTMLHeadingElement>(null);
  const id = `settings-${section}`;
  const lead = words.leads[section];
  useEffect(() => {
    // On a phone the link that had the focus is gone.
    if (isOpen && isNamed && !isFocusShown()) title.current?.focus();
  }, [isOpen, isNamed]);
  return (
    <Stack
      component="section"
      className={classes.sectionBody ?? ''}
      aria-labelledby={id}
      hidden={!isOpen}
      maw={760}
    >
      <AnchorLink
        to="/storage/$bucket"
        params={{ bucket }}
        search={{ tab: 'settings' }}
        replace
        className={classes.allSections ?? ''}
        size="sm"
      >
        {words.all}
      </AnchorLink>
      <Title order={2} id={id} ref={title} tabIndex={-1} className={classes.sectionHead ?? ''}>
        {words.titles[section]}
      </Title>
      {lead !== undefined && <Text c="dimmed">{lead}</Text>}
      {children}
    </Stack>
  );
}

function isFocusShown(): boolean {
  const { activeElement } = document;
  return activeElement !== null && activeElement !== document.body && activeElement.checkVisibility();
}
