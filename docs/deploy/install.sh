#!/bin/sh
# Installs svc on Debian 12 and 13 and Ubuntu 24.04, upgrades it, rolls it back and removes it. docs/install.md has the
# same steps by hand. Prints each command before it runs it; with --dry-run it only prints them. Steps that are already
# done are skipped, so running it twice changes nothing.
set -eu
umask 022

usage() {
  cat >&2 <<'END'
sh install.sh install   ARCHIVE  [--name NAME] [--listen ADDRESS] [--node NODE] [--key PEM] [--dry-run]
sh install.sh upgrade   ARCHIVE  [--name NAME] [--node NODE] [--key PEM] [--dry-run]
sh install.sh rollback           [--name NAME] [--dry-run]
sh install.sh uninstall          [--name NAME] [--purge] [--dry-run]

ARCHIVE           svc-VERSION.tgz; SHA256SUMS and the manifests beside it are checked
--name NAME       the unit, the user and the folders: /opt/NAME, /srv/NAME, /etc/NAME, ... (svc)
--listen ADDRESS  what the socket listens on, as in ListenStream= (127.0.0.1:8080)
--node NODE       an archive of nodejs.org, with SHASUMS256.txt beside it; else the Node of this machine
--key PEM         the public key of the maintainers: nothing is installed without their signature
--purge           removes the application, secrets, data and logs too
END
  exit 64
}

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

say() {
  printf '\n# %s\n' "$*"
}

# Prints a command as one would type it, and runs it unless this is a dry run.
run() {
  printf '+'
  for word in "$@"; do
    case $word in
      '' | *[!A-Za-z0-9_./:=,@%+-]*) printf " '%s'" "$(printf %s "$word" | sed "s/'/'\\\\''/g")" ;;
      *) printf ' %s' "$word" ;;
    esac
  done
  printf '\n'
  $dry || "$@"
}

# The file of a version, of which a dry run has only the archive.
deploy_file() {
  if [ -e "$opt/$1/docs/deploy/$2" ]; then echo "$opt/$1/docs/deploy/$2"; else echo "$temp/package/docs/deploy/$2"; fi
}

# Replaces a link in one step.
link() {
  run ln -sfn "$2" "$opt/.$1.new"
  run mv -T "$opt/.$1.new" "$opt/$1"
}

check_archive() {
  say "The archive: checksum and signature"
  [ -f "$archive" ] || fail "$archive is missing"
  beside=$(cd "$(dirname "$archive")" && pwd)
  archive=$beside/$(basename "$archive")
  if [ -n "$key" ]; then
    base64 -d "$beside/SHA256SUMS.sig" >"$temp/sig" || fail "$beside/SHA256SUMS.sig is missing or damaged"
    run openssl pkeyutl -verify -rawin -pubin -inkey "$key" -sigfile "$temp/sig" -in "$beside/SHA256SUMS"
  fi
  check_sum "$archive" SHA256SUMS
  tar -xzf "$archive" -C "$temp" package/package.json package/docs/deploy || fail "$archive is no archive of svc"
  version=$(sed -n 's/^  "version": "\([0-9A-Za-z.+-]*\)",$/\1/p' "$temp/package/package.json")
  [ -n "$version" ] || fail "$archive names no version"
}

# check_sum FILE SUMS: against the list beside the file.
check_sum() {
  if [ ! -f "$(dirname "$1")/$2" ]; then
    [ -z "$key" ] || fail "$2 is missing beside $1"
    echo "not checked: no $2 beside $1"
    return
  fi
  grep -q "  $(basename "$1")\$" "$(dirname "$1")/$2" || fail "$2 does not list $(basename "$1")"
  run env -C "$(dirname "$1")" sha256sum --strict --ignore-missing -c "$2"
}

install_node() {
  say "Node"
  if [ -n "$node" ]; then
    [ -f "$(dirname "$node")/SHASUMS256.txt" ] || fail "SHASUMS256.txt is missing beside $node"
    target=$(basename "$node")
    target=$root/opt/node/${target%.tar.*}
    if [ ! -x "$target/bin/node" ]; then
      check_sum "$node" SHASUMS256.txt
      run mkdir -p "$root/opt/node"
      run tar -xf "$node" -C "$root/opt/node" --no-same-owner
      $dry || "$target/bin/node" --version >/dev/null ||
        fail "$target/bin/node does not start: apt install libstdc++6, for Node 26 also libatomic1"
    fi
    [ -L "$node_link" ] || [ ! -e "$node_link" ] || fail "$node_link is no link: remove it first"
    old_node=$(readlink "$node_link" || true)
    if [ "$old_node" != "$target/bin/node" ]; then
      run ln -sfn "$target/bin/node" "$node_link"
      new_node=true
    fi
    if $dry; then return; fi
  fi
  command -v node >/dev/null || fail "there is no Node in $PATH: pass --node ARCHIVE (Debian 13: apt install nodejs)"
  node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' ||
    fail "Node $(node --version) is too old: svc needs 20.19 or later: pass --node ARCHIVE"
  echo "ok: $(command -v node) is $(node --version)"
}

unpack() {
  say "Version $version in $opt/$version"
  into=$opt/$version
  if [ ! -d "$into" ]; then
    into=$opt/.unpacking
    run rm -rf "$into"
    run mkdir -p "$into"
    run tar -xzf "$archive" -C "$into" --strip-components=1 --no-same-owner
  fi
  code=$(node -p 'process.features.typescript ? "lib" : "dist"' || echo lib)
  manifest=$beside/svc-$version.$code.manifest.json
  if [ -f "$manifest" ]; then
    run node "$into/bin/svc.js" verify "$manifest" ${key:+--key "$key"} || fail "$into is not what $manifest says"
  else
    [ -z "$key" ] || fail "$manifest is missing"
    echo "not verified: no $(basename "$manifest") beside the archive"
  fi
  [ "$into" = "$opt/$version" ] || run mv -T "$into" "$opt/$version"
}

make_user() {
  say "The user $name"
  put svc.sysusers "$root/etc/sysusers.d/$name.conf"
  getent passwd "$name" >/dev/null || run systemd-sysusers
  # What root creates here (passwd its record), and what came from another machine, the server could not write.
  for folder in "$root/var/lib/$name" "$root/var/cache/$name" "$root/var/log/$name"; do
    [ -d "$folder" ] || run mkdir -p -m 0750 "$folder"
    own "$name:$name" "$folder" "$folder"
  done
}

# own OWNER FOLDER FILE...: gives all of a folder to its owner, unless the files show that it has it.
own() {
  owner=$1 owned=$2
  shift 2
  for file in "$@"; do
    if [ "$(stat -c %U:%G "$file" 2>/dev/null)" != "$owner" ]; then
      run chown -R "$owner" "$owned"
      return
    fi
  done
}

make_application() {
  say "The application in $app"
  if [ ! -e "$app/svc.json" ]; then
    run node "$opt/$version/bin/svc.js" init "$app"
    run rm "$app/svc.local.json"
  fi
  set -- "$app/svc.json"
  case $(value paths log) in
    /* | unknown) ;;
    *)
      [ ! -e "$app/svc.local.json" ] || fail "$app/svc.local.json does not set paths.log to a folder of this machine:" \
        "remove it if it is of another one, else add the settings of docs/deploy/svc.local.json"
      copy svc.local.json "$app/svc.local.json"
      set -- "$@" "$app/svc.local.json"
      ;;
  esac
  if [ $# = 1 ] && [ -e "$app/svc.local.json" ]; then set -- "$@" "$app/svc.local.json"; fi
  own "root:$name" "$app" "$@"
  for file in "$@"; do
    [ "$(stat -c %a "$file" 2>/dev/null)" = 640 ] || run chmod 0640 "$file"
  done
}

# value GROUP KEY: what the configuration files of the application have for it, the local one first; "unknown" where one of
# them cannot be read, which the check reports.
value() {
  node -p 'const [folder, group, key] = process.argv.slice(1)
    const files = ["svc.json", "svc.local.json"].map((file) => folder + "/" + file).filter((file) => fs.existsSync(file))
    const valueIn = (config) => config[group]?.[key] ?? config[group + "." + key] ?? ""
    try { files.map((file) => valueIn(JSON.parse(fs.readFileSync(file, "utf8")))).filter(String).at(-1) ?? "" }
    catch { "unknown" }' "$app" "$1" "$2" 2>/dev/null || true
}

make_secret() {
  say "The secret, app_key"
  [ -d "$etc" ] || run mkdir -m 0750 "$etc"
  own "root:$name" "$etc" "$etc"
  [ -e "$etc/app_key" ] || run node -e 'const key = crypto.randomBytes(32).toString("base64url")
    fs.writeFileSync(process.argv[1], key + "\n", { mode: 0o600, flag: "wx" })' "$etc/app_key"
}

# Name and password of the panel come from the terminal, or are three lines of standard input.
make_sign_in() {
  say "Name and password of the panel"
  case $(value admin enabled)$(value admin password) in
    '' | true) run env "CREDENTIALS_DIRECTORY=$etc" node "$opt/$version/bin/svc.js" passwd --config "$app/svc.json" ;;
  esac
}

check_application() {
  say "The application with version $version"
  # The key that the service gets as a credential: without it the check would warn of an empty one.
  (
    if [ -r "$etc/app_key" ]; then SVC_APP_KEY=$(cat "$etc/app_key") && export SVC_APP_KEY; fi
    run runuser -u "$name" -- node "$opt/$version/bin/svc.js" check --config "$app/svc.json"
  ) ||
    fail "version $version cannot serve $app, so nothing was switched"
}

# copy FILE TARGET: a file of docs/deploy, with the name of this instance.
copy() {
  shown=$opt/$version/docs/deploy/$1
  if [ "$name" = svc ]; then
    run install -D -m 0644 "$shown" "$2"
  else
    run sh -c "sed '$rename' '$shown' | install -D -m 0644 /dev/stdin '$2'"
  fi
}

# put FILE TARGET: as copy, but keeps a file that is not as the version in use had it, since someone has edited it.
put() {
  if sed "$rename" "$(deploy_file "$version" "$1")" | cmp -s - "$2"; then return; fi
  if [ -e "$2" ] && ! sed "$rename" "$opt/${old:-none}/docs/deploy/$1" 2>/dev/null | cmp -s - "$2"; then
    echo "kept: $2 was edited; compare it with $opt/$version/docs/deploy/$1"
    return
  fi
  copy "$1" "$2"
  changed=true
}

put_units() {
  say "Units and logrotate"
  put svc.service "$units/$name.service"
  put svc.socket "$units/$name.socket"
  put svc.logrotate "$root/etc/logrotate.d/$name"
  if [ -n "$listen" ]; then
    lines="[Socket]\nListenStream=\nListenStream=$listen\n"
    # shellcheck disable=SC2059 # It is a format: no % is in an address.
    if ! printf "$lines" | cmp -s - "$units/$name.socket.d/listen.conf"; then
      run mkdir -p "$units/$name.socket.d"
      run sh -c "printf '$lines' >'$units/$name.socket.d/listen.conf'"
      changed=true
    fi
  fi
}

# Returns when the service is ready: Type=notify lets systemctl wait for that.
start() {
  say "Start"
  if $changed; then run systemctl daemon-reload; fi
  if systemctl is-enabled -q "$name.socket" "$name.service" 2>/dev/null && systemctl is-active -q "$name.service"; then
    if $changed; then run systemctl restart "$name.socket" "$name.service"; fi
  else
    run systemctl enable --now "$name.socket" "$name.service" || fail "it does not start: journalctl -u $name.service"
  fi
  $dry || echo "ok: $name.service is ready"
}

# switch FROM TO: the socket keeps connections meanwhile. Returns 1, with FROM in use, where TO does not start.
switch() {
  old=$1 version=$2 changed=false
  put_units
  say "From $1 to $2"
  link previous "$1"
  link current "$2"
  if $changed; then run systemctl daemon-reload; fi
  run systemctl restart "$name.service"
}

switch_or_return() {
  from=$1 to=$2 before=$(readlink "$opt/previous" || true)
  if switch "$from" "$to"; then return; fi
  say "Version $to does not start"
  journalctl --no-pager -o cat -n 20 -u "$name.service" || true
  if $new_node && [ -n "$old_node" ]; then run ln -sfn "$old_node" "$node_link"; fi
  if $new_node && [ -z "$old_node" ]; then run rm "$node_link"; fi
  switch "$to" "$from" || fail "neither $to nor $from starts: journalctl -u $name.service"
  if [ -n "$before" ]; then link previous "$before"; else run rm "$opt/previous"; fi
  fail "version $to does not start: version $from is in use again"
}

do_install() {
  [ "$name" = svc ] || [ -n "$listen" ] || [ -e "$units/$name.socket.d/listen.conf" ] || fail "--name needs --listen"
  [ "$name" = svc ] || [ ! -e "$etc" ] || [ -e "$etc/app_key" ] || fail "--name $name: $etc belongs to something else"
  check_archive
  old=$(readlink "$opt/current" || true)
  [ "${old:-$version}" = "$version" ] || fail "version $old is installed: use upgrade"
  install_node
  unpack
  make_user
  make_application
  make_secret
  make_sign_in
  check_application
  [ -n "$old" ] || link current "$version"
  put_units
  start
}

do_upgrade() {
  old=$(readlink "$opt/current") || fail "there is no $opt/current: use install"
  check_archive
  if [ "$old" = "$version" ]; then
    echo "ok: version $version is in use"
    return
  fi
  install_node
  unpack
  check_application
  switch_or_return "$old" "$version"
  $dry || echo "ok: version $version is ready; install.sh rollback returns to $old"
}

do_rollback() {
  old=$(readlink "$opt/current") || fail "there is no $opt/current"
  version=$(readlink "$opt/previous") || fail "there is no $opt/previous: nothing was upgraded"
  [ -d "$opt/$version" ] || fail "$opt/$version is missing"
  check_application
  switch_or_return "$old" "$version"
  $dry || echo "ok: version $version is ready"
}

do_uninstall() {
  [ -L "$opt/current" ] || { $purge && [ -e "$etc/app_key" ]; } || fail "there is no $opt/current"
  say "Units, versions"
  if [ -e "$units/$name.service" ]; then run systemctl disable --now "$name.socket" "$name.service"; fi
  run rm -rf "$opt" "$units/$name.service" "$units/$name.socket" \
    "$root/etc/logrotate.d/$name" "$root/etc/sysusers.d/$name.conf"
  if $purge; then
    say "Application, secrets, data, logs, drop-ins, user"
    run rm -rf "$app" "$etc" "$root/var/lib/$name" "$root/var/cache/$name" "$root/var/log/$name" \
      "$units/$name.service.d" "$units/$name.socket.d"
    if getent passwd "$name" >/dev/null; then run userdel "$name"; fi
  else
    echo "kept: $app, $etc, the folders $name in /var/lib, /var/cache, /var/log, drop-ins, and the user $name (--purge)"
  fi
  run systemctl daemon-reload
}

name=svc listen='' node='' key='' purge=false dry=false archive='' old='' old_node='' new_node=false changed=false
# Tests set a root folder; it has no other use.
root=${SVC_INSTALL_ROOT:-}
[ $# -gt 0 ] || usage
command=$1
shift
while [ $# -gt 0 ]; do
  case $1 in
    --dry-run) dry=true ;;
    --purge) purge=true ;;
    --name | --listen | --node | --key)
      [ $# -gt 1 ] || usage
      eval "${1#--}=\$2"
      shift
      ;;
    -*) usage ;;
    *)
      [ -z "$archive" ] || usage
      archive=$1
      ;;
  esac
  shift
done
case $command in
  install | upgrade) [ -n "$archive" ] || usage ;;
  rollback | uninstall) [ -z "$archive$key$node$listen" ] || usage ;;
  *) usage ;;
esac
case $name in '' | [!a-z]* | *[!a-z0-9-]*) fail "--name $name: lower-case letters, digits and hyphens" ;; esac
case $listen in *[!A-Za-z0-9./:_@\[\]-]*) fail "--listen $listen is no address" ;; esac
$dry || [ -n "$root" ] || [ "$(id -u)" = 0 ] || fail "run it as root: sudo sh install.sh $command ... (or --dry-run)"

opt=$root/opt/$name app=$root/srv/$name etc=$root/etc/$name units=$root/etc/systemd/system
node_link=$root/usr/local/bin/node
rename="s/\\bsvc\\b/$name/g; s/\\b$name\\.js/svc.js/g"
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
"do_$command"
