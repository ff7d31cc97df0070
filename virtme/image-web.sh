#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# image-web.sh FILE: the part of the image of kind web that is not in the base: Tomcat with its JVM and our servlet,
# nginx, and what they are linked with, as a cpio archive that the kernel unpacks over the base's.
#
# Runs inside the root that virtme/web.sh makes, since that is where these programs are; image.sh joins the two.

set -euo pipefail
umask 022

file=${1:?usage: image-web.sh FILE}
here=$(cd "$(dirname "$0")/.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
java=/usr/lib/jvm/java-21-openjdk-amd64
apps=$here/selftests/apps

# The base's own: a folder in its place would hide what is there.
chmod 755 "$tree"
for link in bin sbin lib lib64; do
	mkdir -p "$tree/usr/$link"
	ln -s "usr/$link" "$tree/$link"
done

# add PATH…: as they are, links included.
add() {
	local path
	for path; do
		mkdir -p "$tree$(dirname "$path")"
		cp -a "$path" "$tree$(dirname "$path")/"
	done
}

# A program and the libraries it is linked with, but for libc's, which the base has.
add_libraries() {
	ldd "$@" 2>/dev/null | sed -n 's/.*=> \(\/[^ ]*\) (.*/\1/p' | sort -u | while read -r lib; do
		case $lib in
		"$java"/*) continue ;;
		esac
		mkdir -p "$tree$(dirname "$lib")"
		cp -L --remove-destination "$lib" "$tree$lib"
	done
}

# No pictures of classes for heaps that nobody makes, no licences of its parts: they are in Debian's package.
add "$java" /etc/java-21-openjdk
rm -rf "$tree$java"/{docs,legal,man,lib/server/classes_nocoops.jsa}
for jar in /usr/share/tomcat10/{bin/bootstrap.jar,bin/tomcat-juli.jar,lib/*.jar}; do
	case $jar in
	*-i18n-* | *-ant.jar | *-ha.jar | *-tribes.jar) continue ;;
	esac
	mkdir -p "$tree$(dirname "$jar")"
	cp -L "$jar" "$tree$jar"
done
add /usr/sbin/nginx
add_libraries "$java/bin/java" "$java"/lib/*.so "$java"/lib/server/*.so /usr/sbin/nginx

base=$tree/srv/tomcat
mkdir -p "$base"/{conf,logs,temp,work,webapps/ROOT/WEB-INF/classes}
cp /usr/share/tomcat10/etc/catalina.properties "$base/conf/"
cp "$apps/server.xml" "$base/conf/"
cp "$apps/web.xml" "$base/webapps/ROOT/WEB-INF/"
"$java/bin/java" -cp "/usr/share/java/eclipse-jdt-core.jar:/usr/share/java/eclipse-jdt-core-compiler-batch.jar" \
	org.eclipse.jdt.internal.compiler.batch.Main -source 17 -target 17 -proc:none -failOnWarning \
	-cp /usr/share/java/tomcat10-servlet-api.jar -d "$base/webapps/ROOT/WEB-INF/classes" "$apps/Reply.java"

mkdir -p "$tree/srv/nginx" "$tree/var/lib/nginx/body" "$tree/var/log/nginx"
cp "$apps/nginx.conf" "$tree/srv/nginx.conf"
head -c 3096 /dev/zero | tr '\0' x >"$tree/srv/nginx/reply"

find "$tree" -exec touch -h -d @0 {} +
(cd "$tree" && find . -print0 | LC_ALL=C sort -z | cpio -0 -o -H newc --quiet --reproducible) >"$file.new"
mv "$file.new" "$file"
